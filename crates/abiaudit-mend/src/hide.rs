//! `hide`: every export but the entry points becomes hidden, as `--exclude-libs` or a version script would have done.
//!
//! The loader binds references to a hidden symbol to the object itself and passes over hidden definitions in look-ups, so
//! the copy is the object's alone. All or nothing: with `std::*` hidden and `__once_proxy` left, `std::call_once` jumps to
//! address 0 (ABI203).

use abiaudit_edit::{Edit, EditPlan, SymbolName};

use crate::copy::RuntimeCopy;
use crate::cure::{Cure, Method, Patient, no_private_unwinder};
use crate::refusal::Refusal;

pub(crate) fn plan(patient: &Patient<'_>, copy: &RuntimeCopy) -> Result<Cure, Refusal> {
    no_private_unwinder(patient)?;
    let object = patient.object;
    let runtime: std::collections::BTreeSet<u32> = copy.all().collect();
    let (mut hidden, mut kept) = (Vec::new(), 0);
    for (index, symbol) in (1u32..).zip(object.symbols.iter()).filter(|(_, s)| s.is_exported()) {
        let name = object.symbols.name_text(symbol);
        let is_runtime = runtime.contains(&index);
        match patient.wanted.get(&name) {
            Some(by) if is_runtime => {
                return Err(Refusal::UsedBySibling { symbol: name, by: by.clone() });
            }
            // C names are what Python and ctypes ask for by name at run time.
            wanted if !is_runtime && (wanted.is_some() || !name.starts_with("_Z")) => kept += 1,
            _ => hidden.push(SymbolName::new(name)),
        }
    }
    let notes = vec![
        format!("{} exports become hidden, {kept} stay", hidden.len()),
        "its libstdc++ stays, as a copy of its own: std::cout and locales exist twice, and each serves its own".to_owned(),
    ];
    Ok(Cure { method: Method::Hide, plan: EditPlan::new([Edit::Hide { symbols: hidden }]), notes })
}
