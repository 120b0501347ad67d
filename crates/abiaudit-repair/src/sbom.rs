//! The bill of materials of what was grafted: CycloneDX 1.6, in `.dist-info/sboms/` (PEP 770).

use serde_json::{Map, Value, json};

use crate::plan::{Graft, Plan};

/// Schema of the documents that are written.
const SPEC_VERSION: &str = "1.6";

/// Where it goes. Other tools' files there stay as they are.
pub(crate) fn member_name(dist_info: &str) -> String {
    format!("{dist_info}/sboms/abiaudit.cdx.json")
}

/// A graft and the SHA-256 of the copy, in hexadecimal digits.
pub(crate) struct Copied<'p> {
    pub graft: &'p Graft,
    pub sha256: String,
}

/// The document: one component a graft. Components of `earlier`, a document of an earlier repair, stay.
///
/// # Errors
/// What is wrong with `earlier`.
pub(crate) fn document(
    plan: &Plan,
    name_and_version: (&str, &str),
    copied: &[Copied<'_>],
    earlier: Option<&[u8]>,
    tool_version: &str,
) -> Result<Vec<u8>, String> {
    let (name, version) = name_and_version;
    let wheel = format!("pkg:pypi/{}@{version}", abiaudit_wheel::normalize_name(name));
    let (mut components, mut depends) = kept(earlier, &wheel)?;
    for copy in copied {
        let component = component(copy);
        let reference = component.get("bom-ref").cloned().unwrap_or_default();
        if !depends.contains(&reference) {
            depends.push(reference);
            components.push(component);
        }
    }
    let mut dependencies = vec![json!({"ref": wheel, "dependsOn": depends})];
    dependencies.extend(depends_of(copied));
    let document = json!({
        "$schema": format!("http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json"),
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "abiaudit", "version": tool_version}]},
            "component": {
                "type": "library", "bom-ref": wheel, "name": name, "version": version,
                "purl": format!("{wheel}?file_name={}", plan.output),
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    let mut bytes = serde_json::to_vec_pretty(&document).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Components of an earlier document, and their references.
fn kept(earlier: Option<&[u8]>, wheel: &str) -> Result<(Vec<Value>, Vec<Value>), String> {
    let Some(bytes) = earlier else { return Ok((Vec::new(), Vec::new())) };
    let document: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let components: Vec<Value> =
        document.get("components").and_then(Value::as_array).cloned().unwrap_or_default();
    let references = components.iter().filter_map(|component| component.get("bom-ref").cloned());
    let references = references.filter(|reference| reference != wheel).collect();
    Ok((components, references))
}

fn component(copy: &Copied<'_>) -> Value {
    let graft = copy.graft;
    let mut component = Map::new();
    component.insert("type".into(), json!("library"));
    component.insert("bom-ref".into(), json!(reference(copy.graft)));
    match &graft.package {
        Some(package) => {
            component.insert("name".into(), json!(package.name));
            component.insert("version".into(), json!(package.version));
            component.insert("purl".into(), json!(package.purl));
            if let Some(licence) = &package.licence {
                component.insert("licenses".into(), json!([{"license": {"name": licence}}]));
            }
        }
        None => {
            component.insert("name".into(), json!(graft.soname));
        }
    }
    component.insert("hashes".into(), json!([{"alg": "SHA-256", "content": copy.sha256}]));
    let ancestor = json!({
        "type": "file", "name": graft.source.file_name(),
        "hashes": [{"alg": "SHA-256", "content": graft.sha256}],
    });
    let notes = graft.plan.edits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    component.insert("pedigree".into(), json!({"ancestors": [ancestor], "notes": notes}));
    component.insert("evidence".into(), json!({"occurrences": [{"location": graft.member}]}));
    component.insert("properties".into(), properties(graft));
    Value::Object(component)
}

/// The file is the component, not the package, which may have given several.
fn reference(graft: &Graft) -> String {
    let owner = graft.package.as_ref().map_or(graft.soname.as_str(), |package| package.purl.as_str());
    format!("{owner}#{}", graft.sha256)
}

/// The path is told only where a package says it; others may tell about people's machines.
fn properties(graft: &Graft) -> Value {
    let mut properties = vec![json!({"name": "abiaudit:soname", "value": graft.soname})];
    if let Some(id) = &graft.build_id {
        properties.push(json!({"name": "abiaudit:build-id", "value": id}));
    }
    if graft.package.is_some() {
        properties.push(json!({"name": "abiaudit:source", "value": graft.source.to_string()}));
    }
    Value::Array(properties)
}

/// Which graft needs which.
fn depends_of(copied: &[Copied<'_>]) -> Vec<Value> {
    let all = copied.iter().map(|copy| copy.graft);
    copied
        .iter()
        .map(|copy| {
            let needs: Vec<String> = all
                .clone()
                .filter(|other| other.needed_by.contains(&copy.graft.member))
                .map(reference)
                .collect();
            json!({"ref": reference(copy.graft), "dependsOn": needs})
        })
        .collect()
}
