//! Reports: text, JSON, SARIF, JUnit, GitHub, Markdown, auditwheel-json.
