//! Bindings as a page that needs nothing but itself.
//!
//! The data stand in the page as JSON, in a script element that the browser does not run; `page.js` builds tables and
//! graph from them and sets every name as text, never as markup.

use std::io::{self, Write};

use super::model::Bindings;

pub(super) fn render(bindings: &Bindings, out: &mut dyn Write) -> io::Result<()> {
    // `<` cannot occur outside strings in JSON, so that nothing in the data ends the element or opens a comment
    // (HTML standard, "Restrictions for contents of script elements").
    let data = serde_json::to_string(bindings)?.replace('<', "\\u003c");
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>abiaudit bind</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n\
         <main></main>\n<noscript>The tables of this page are built by its script.</noscript>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{}</script>\n</body>\n</html>\n",
        include_str!("page.css"),
        include_str!("page.js"),
    )
}
