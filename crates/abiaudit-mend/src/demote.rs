//! `demote`: `STB_GNU_UNIQUE` becomes weak, so that ids and tables of facets are looked up in one scope and come from one
//! copy. It cures torn facets, and nothing else.

use abiaudit_detect::OncePair;
use abiaudit_edit::{Binding, Edit, EditPlan};

use crate::cure::{Cure, Method, Patient, no_private_unwinder};
use crate::refusal::Refusal;

pub(crate) fn plan(patient: &Patient<'_>) -> Result<Cure, Refusal> {
    no_private_unwinder(patient)?;
    let cxx = &patient.carries.cxx;
    match cxx.once {
        OncePair::ProxyOnly => {
            return Err(Refusal::PartlyHidden { example: "_ZSt11__once_call".to_owned() });
        }
        OncePair::CallOnly => return Err(Refusal::PartlyHidden { example: "__once_proxy".to_owned() }),
        OncePair::Neither | OncePair::Both => {}
    }
    let unique = patient.object.symbols.iter();
    let unique = unique.filter(|s| s.is_exported() && s.binding() == abiaudit_elf::Binding::Unique).count();
    if unique == 0 {
        return Err(Refusal::NothingToCure);
    }
    let notes = vec![
        format!("{unique} symbols of binding UNIQUE become weak"),
        "its libstdc++ stays, exported: whichever copy comes first in a scope serves it".to_owned(),
    ];
    let plan = EditPlan::new([Edit::DemoteUnique { to: Binding::Weak }]);
    Ok(Cure { method: Method::Demote, plan, notes })
}
