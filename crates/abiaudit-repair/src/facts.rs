//! The facts of a wheel as they will be once a closure is in it, so that the gate can judge a plan before a byte is written.

use abiaudit_edit::{Edit, EditPlan, SearchPathKind};
use abiaudit_elf::{Name, Object};
use abiaudit_rules::Audit;
use abiaudit_scan::{Content, Member, Subject, installed_path};

use crate::closure::Closure;

/// The subject as it will be; `None` if nothing changes.
pub(crate) fn repaired(audit: &Audit<'_>, closure: &Closure, ignore_isa: bool) -> Option<Subject> {
    if closure.grafted.is_empty() && closure.edited.is_empty() && !ignore_isa {
        return None;
    }
    let mut subject = audit.subject.clone();
    for edited in &closure.edited {
        let name = audit.member_name(edited.object);
        let Some(member) = subject.members.iter_mut().find(|member| member.name == name) else { continue };
        member.name.clone_from(&edited.member);
        member.installed = installed_path(&member.name);
        apply(member, &edited.plan);
    }
    for grafted in &closure.grafted {
        let mut member = grafted.library.member.clone();
        member.name.clone_from(&grafted.member);
        member.installed = installed_path(&member.name);
        apply(&mut member, &grafted.plan);
        subject.members.push(member);
    }
    subject.members.sort_by(|a, b| a.name.cmp(&b.name));
    if ignore_isa {
        forget_isa(&mut subject);
    }
    Some(subject)
}

/// Takes what objects say of the processor out of a subject: `--disable-isa-ext-check`.
pub(crate) fn forget_isa(subject: &mut Subject) {
    for member in &mut subject.members {
        if let Content::Object(object) = &mut member.content {
            object.notes.x86_isa_needed = 0;
        }
    }
}

fn apply(member: &mut Member, plan: &EditPlan) {
    if let Content::Object(object) = &mut member.content {
        plan.edits.iter().for_each(|edit| apply_edit(object, edit));
    }
}

/// What the edits that repairs make mean for the facts.
fn apply_edit(object: &mut Object, edit: &Edit) {
    let dynamic = &mut object.dynamic;
    match edit {
        Edit::ReplaceNeeded { from, to } => {
            let needs = object.versions.needs.iter_mut().map(|need| &mut need.library);
            for name in dynamic.needed.iter_mut().chain(needs) {
                if *name == from.as_str() {
                    *name = Name::from(to.as_str());
                }
            }
        }
        Edit::RemoveNeeded { library } => dynamic.needed.retain(|name| *name != library.as_str()),
        Edit::SetSoname { soname } => dynamic.soname = Some(Name::from(soname.as_str())),
        Edit::SetSearchPath { kind, path } => {
            let path = Some(Name::from(path.as_str()));
            (dynamic.rpath, dynamic.runpath) = match kind {
                SearchPathKind::Rpath => (path, None),
                SearchPathKind::Runpath => (None, path),
            };
        }
        Edit::RemoveSearchPath => (dynamic.rpath, dynamic.runpath) = (None, None),
        _ => {}
    }
}
