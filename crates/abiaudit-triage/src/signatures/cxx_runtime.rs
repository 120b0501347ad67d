//! Two C++ runtimes or unwinders in one process.

use crate::signature::{Certainty, Check, Sign, Signature};
use crate::stack::{Frame, Sighting, Stack};

const EXPORTED: Check = Check { rule: "ABI201", shows: "a file exports a whole libstdc++" };
const VENDORED: Check = Check { rule: "ABI202", shows: "a wheel brings a libstdc++ of its own" };
const HALF_HIDDEN: Check = Check {
    rule: "ABI203",
    shows: "a file exports __once_proxy but hides the variables that belong to it, or the reverse",
};
const PRIVATE: Check = Check { rule: "ABI204", shows: "a file carries an unwinder of its own" };

pub static FACET_MISMATCH: Signature = Signature {
    id: "facet-mismatch",
    name: "A stream called the facet of another C++ runtime",
    certainty: Certainty::Certain,
    meaning: "Two copies of libstdc++ live in the process, and at least one exports its symbols. The identities of \
              locale facets (std::num_put<char>::id and the like) are STB_GNU_UNIQUE: the whole process shares one, \
              although each copy numbers its own tables. So a stream asks for the facet that prints numbers and gets \
              what lies in that slot of the other copy's table, such as codecvt<char16_t>. Code compiled by GCC 13 \
              or newer casts without a check and crashes; older code throws std::bad_cast or prints nothing.",
    checks: &[EXPORTED, VENDORED],
    mend: "Link libstdc++ dynamically, through a split toolchain where the target system is older than the compiler; \
           or hide the static copy with -Wl,--exclude-libs,ALL or a version script that makes everything local but \
           PyInit_*. -fvisibility=hidden, -Bsymbolic and -fno-gnu-unique don't help: they do not reach the objects \
           of libstdc++.a. Do not vendor a libstdc++ under another name.",
    references: &[
        "pytorch #109923",
        "duckdb #7909, #7921",
        "crosstool-ng #2478",
        "CV-CUDA #113",
        "momentum #1566",
    ],
    sign: Sign::Stack(facet_mismatch),
};

pub static BAD_CAST_IN_STREAM: Signature = Signature {
    id: "bad-cast-in-stream",
    name: "A stream or locale did not find its facet",
    certainty: Certainty::Likely,
    meaning: "std::use_facet found no facet, or one of the wrong type, where every locale has one. This is how code \
              compiled by GCC 12 or older notices that two copies of libstdc++ share the identities of their facets \
              but not their tables; without an exception mask on the stream it only prints nothing.",
    checks: &[EXPORTED, VENDORED],
    mend: "As for facet-mismatch: one libstdc++ for all, or every further copy wholly hidden. If the program uses \
           facets of its own, make sure that they are installed in the locale first.",
    references: &["duckdb #7921", "conda-forge.github.io #388"],
    sign: Sign::Stack(bad_cast_in_stream),
};

pub static ONCE_NULL_CALL: Signature = Signature {
    id: "once-null-call",
    name: "std::call_once called nothing",
    certainty: Certainty::Certain,
    meaning: "glibc's pthread_once ran __once_proxy, which calls through the thread's std::__once_call, and found it \
              null: the proxy of one libstdc++ was bound with the variables of another. __once_proxy has C linkage, \
              so a version script that hides only extern \"C++\" { std::* } leaves it exported while the variables \
              are hidden; a library in the global scope (RTLD_GLOBAL, LD_PRELOAD, the program itself) then supplies \
              the other half. std::async and pybind11's gil_safe_call_once_and_store use it too.",
    checks: &[HALF_HIDDEN, EXPORTED],
    mend: "Hide all of the static libstdc++ or none: a version script with local: *, or -Wl,--exclude-libs,ALL; \
           better, link libstdc++ dynamically.",
    references: &[
        "GCC libstdc++ mutex.cc",
        "glibc nptl/pthread_once.c",
        "optree with torch (call_once in GetCxxModule)",
    ],
    sign: Sign::Stack(once_null_call),
};

pub static PRIVATE_UNWINDER: Signature = Signature {
    id: "private-unwinder",
    name: "An exception met an unwinder that was never set up",
    certainty: Certainty::Certain,
    meaning: "The personality routine stored a register through _Unwind_SetGR of another copy of libgcc than the one \
              that unwinds; the size table of that copy was never filled, and it aborts. A file linked with \
              -static-libgcc threw or passed an exception across the border to a file that uses libgcc_s.so.1.",
    checks: &[PRIVATE, EXPORTED],
    mend: "Link without -static-libgcc, so that all share libgcc_s.so.1; or catch every exception before it leaves \
           the file, and hide the unwinder's symbols.",
    references: &["duckdb #7909, #7921", "GCC libgcc/unwind-dw2.c"],
    sign: Sign::Stack(private_unwinder),
};

pub static TWO_UNWINDERS: Signature = Signature {
    id: "two-unwinders",
    name: "One exception went through two unwinders",
    certainty: Certainty::Likely,
    meaning: "Functions _Unwind_* of two files are in one stack: libgcc_s.so.1 and LLVM's libunwind or a static copy. \
              They share names but no data. It happens when the object that pulls libgcc_s.so.1 in has the other \
              unwinder earlier in its scope: libgcc_s.so.1 is then bound to it in part.",
    checks: &[Check { rule: "ABI205", shows: "a file that loads LLVM's unwinder before libgcc_s" }, PRIVATE],
    mend: "Use one unwinder: build libc++ against libgcc_s, or hide the static unwinder's symbols; import the library \
           that needs libgcc_s.so.1 first as a stopgap.",
    references: &["System V ABI, unwind library interface", "duckdb #7921"],
    sign: Sign::Stack(two_unwinders),
};

pub static HEAP_ACROSS_RUNTIMES: Signature = Signature {
    id: "heap-across-runtimes",
    name: "Memory of one C++ runtime was freed by another",
    certainty: Certainty::Likely,
    meaning: "The allocator found a pointer that it had not given out, or given back already, under code of a \
              vendored libstdc++ or of two of them: objects such as the shared empty string or a locale belong to \
              one copy and were released by the other.",
    checks: &[EXPORTED, VENDORED],
    mend: "Use the system's libstdc++.so.6 in all wheels: do not vendor it under another name, and hide static \
           copies. Valgrind or AddressSanitizer tell an ordinary double free from this one.",
    references: &["DualBootPatcher #738", "momentum #1566", "pyramids #332"],
    sign: Sign::Stack(heap_across_runtimes),
};

/// Facets that a stream never calls to print or read a number. Printing calls `num_put`, reading `num_get`; both
/// use `numpunct`, `ctype` and through the stream's buffer `codecvt<char, char, mbstate_t>` further down.
const FOREIGN_FACETS: &[&str] = &[
    "codecvt<char16_t",
    "codecvt<char32_t",
    "codecvt<wchar_t",
    "codecvt<char8_t",
    "collate<",
    "messages<",
    "money_get<",
    "money_put<",
    "moneypunct<",
    "time_get<",
    "time_put<",
    "ctype<wchar_t",
    "numpunct<wchar_t",
    "num_get<wchar_t",
    "num_put<wchar_t",
    // The same as printed without demangling (Itanium C++ ABI, Ds and Di are char16_t and char32_t).
    "7codecvtIDs",
    "7codecvtIDi",
    "7codecvtIDu",
    "7codecvtIw",
    "7collateI",
    "8messagesI",
    "9money_getI",
    "9money_putI",
    "10moneypunctI",
    "8time_getI",
    "8time_putI",
];

/// Members of streams that print or read a number by calling a facet.
const STREAM_MEMBERS: &[&str] = &[
    "::_M_insert<",
    "::_M_extract<",
    "9_M_insertI",
    "10_M_extractI",
    "basic_ostream<char, std::char_traits<char> >::operator<<",
];

fn is_stream_member(frame: &Frame) -> bool {
    STREAM_MEMBERS.iter().any(|member| frame.text.contains(member))
}

/// A facet that no stream calls, called by a stream; or the cast to a facet crashed.
fn facet_mismatch(stack: &Stack) -> Option<Sighting> {
    let at = stack.frames.windows(2).position(|pair| {
        // What a stream of wide characters calls is not told apart from a mistake.
        let narrow = !pair[1].text.contains("basic_ostream<wchar_t")
            && !pair[1].text.contains("basic_istream<wchar_t");
        let function = before_arguments(&pair[0].text);
        is_stream_member(&pair[1]) && narrow && FOREIGN_FACETS.iter().any(|facet| function.contains(facet))
    });
    let at = at.or_else(|| {
        let first = stack.frames.first()?;
        (first.calls("__try_use_facet") || first.calls("use_facet")).then_some(0)
    })?;
    let frames: Vec<usize> = (at..stack.frames.len().min(at + 2)).collect();
    Some(Sighting { details: files(stack, &frames), frames })
}

/// The name of the class that a member function belongs to comes before its arguments, which may name others.
fn before_arguments(text: &str) -> &str {
    text.find("::do_").or_else(|| text.find(" (")).map_or(text, |end| &text[..end])
}

fn bad_cast_in_stream(stack: &Stack) -> Option<Sighting> {
    // A slot without a facet throws by the former; one with a facet of the wrong type by the latter, from a dynamic_cast.
    let throws = stack.frames.iter().position(|frame| {
        ["__throw_bad_cast", "_ZSt16__throw_bad_castv", "__cxa_bad_cast"].iter().any(|name| frame.calls(name))
    })?;
    let caller = stack.frames.get(throws + 1)?;
    // Anybody's dynamic_cast calls it.
    let is_dynamic_cast = stack.frames.get(throws)?.calls("__cxa_bad_cast");
    if is_dynamic_cast && !["use_facet<", "9use_facetI"].iter().any(|name| caller.text.contains(name)) {
        return None;
    }
    // Thrown by the look-up of a facet.
    let from_facet =
        ["use_facet", "__check_facet", "basic_ios<", "basic_ostream<", "basic_istream<", "std::locale"];
    let mangled =
        ["9use_facetI", "13__check_facetI", "St9basic_ios", "_ZNSo", "_ZNSi", "NSt7__cxx1115basic_regex"];
    let is_lookup = from_facet.iter().chain(&mangled).any(|part| caller.text.contains(part))
        || caller.text.contains("std::endl")
        || caller.text.contains("std::__detail::_Scanner");
    is_lookup.then(|| {
        let frames = vec![throws, throws + 1];
        Sighting { details: files(stack, &frames), frames }
    })
}

fn once_null_call(stack: &Stack) -> Option<Sighting> {
    let first = stack.frames.first()?;
    let null = first.address == Some(0) && first.text.starts_with("??");
    // Musl and old glibc call it by its plain name.
    let once = stack.frames.iter().take(4).position(|frame| {
        ["__pthread_once_slow", "__pthread_once", "pthread_once", "__once_proxy"]
            .iter()
            .any(|f| frame.calls(f))
    })?;
    let proxied = stack.frames.iter().take(6).any(|frame| {
        ["__once_proxy", "__gthread_once"].iter().any(|f| frame.calls(f)) || frame.text.contains("call_once")
    });
    (null && proxied).then(|| {
        let last = stack.frames.len().min(4).saturating_sub(1).max(once);
        let frames: Vec<usize> = (0..=last).collect();
        Sighting { details: files(stack, &frames), frames }
    })
}

fn private_unwinder(stack: &Stack) -> Option<Sighting> {
    let set = stack.frames.iter().position(|frame| {
        frame.calls("_Unwind_SetGR") || frame.calls("_Unwind_GetGR") || frame.calls("uw_init_context_1")
    })?;
    let aborted = stack.frames[..set].iter().any(|frame| {
        ["abort", "__GI_abort", "raise", "__GI_raise", "gsignal"].iter().any(|f| frame.calls(f))
    });
    aborted.then(|| {
        let frames: Vec<usize> = (set.saturating_sub(1)..stack.frames.len().min(set + 3)).collect();
        Sighting { details: files(stack, &frames), frames }
    })
}

fn two_unwinders(stack: &Stack) -> Option<Sighting> {
    let unwinding: Vec<usize> = (0..stack.frames.len())
        .filter(|&at| stack.frames[at].text.contains("_Unwind_") && stack.frames[at].file.is_some())
        .collect();
    let first = stack.frames.get(*unwinding.first()?)?.file_name();
    let other = unwinding.iter().find(|&&at| stack.frames[at].file_name() != first)?;
    let frames = vec![*unwinding.first()?, *other];
    Some(Sighting { details: files(stack, &frames), frames })
}

fn heap_across_runtimes(stack: &Stack) -> Option<Sighting> {
    let allocator = stack
        .frames
        .iter()
        .position(|frame| ["malloc_printerr", "munmap_chunk", "_int_free"].iter().any(|f| frame.calls(f)));
    if allocator.is_none() && stack.heap_message.is_none() {
        return None;
    }
    let runtimes: Vec<usize> = (0..stack.frames.len())
        .filter(|&at| stack.frames[at].file_name().is_some_and(|name| name.starts_with("libstdc++")))
        .collect();
    let first = stack.frames.get(*runtimes.first()?)?.file.as_ref();
    let vendored = runtimes.iter().copied().find(|&at| stack.frames[at].file_name().is_some_and(is_vendored));
    let second = runtimes.iter().copied().find(|&at| stack.frames[at].file.as_ref() != first);
    let frames: Vec<usize> = allocator.into_iter().chain([vendored.or(second)?]).collect();
    Some(Sighting { details: files(stack, &frames), frames })
}

/// `libstdc++-<hash>.so.6.0.30`, as repair tools name copies; the system's is `libstdc++.so.6`.
fn is_vendored(name: &str) -> bool {
    name.strip_prefix("libstdc++").is_some_and(|rest| rest.starts_with(['-', '_']))
}

/// The files that frames are in.
fn files(stack: &Stack, frames: &[usize]) -> Vec<(&'static str, String)> {
    let named = frames.iter().filter_map(|&at| stack.frames.get(at)?.file.clone());
    named.map(|file| ("library", file)).collect()
}
