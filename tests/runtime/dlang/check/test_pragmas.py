"""Pragmas and provider declarations."""

import pytest

from kinst.runtime.dlang.check.declarations import pragmas
from kinst.runtime.dlang.check.declared import Inlines
from kinst.runtime.dlang.check.expressions import Expressions, Session
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.tree import Pragma
from kinst.runtime.dlang.types.scope import TypeScope
from tests.runtime.clauses.compile.acting import check, context, tag_of
from tests.runtime.dlang.syntax.reading import NOWHERE

BODY = "\nBEGIN { x = 1; }"


def test_options_are_set() -> None:
    session = context()
    check("#pragma D option quiet\n#pragma D option bufsize=2m" + BODY, session)
    assert session.options.is_on("quiet")
    assert session.options.number("bufsize") == 2 << 20


@pytest.mark.parametrize(
    ("tag", "line"),
    [
        ("D_PRAGMA_OPTSET", "option nosuch"),
        ("D_PRAGMA_OPTSET", "option bufsize=many"),
        ("D_PRAGMA_MALFORM", "option"),
        ("D_PRAGMA_MALFORM", "option a b"),
        ("D_PRAGMA_MALFORM", "attributes"),
        ("D_PRAGMA_MALFORM", "attributes Stable/Stable/Common"),
        ("D_PRAGMA_INVAL", "attributes Firm/Stable/Common x"),
        ("D_PRAGMA_INVAL", "attributes Stable/Stable x"),
        ("D_PRAGMA_SCOPE", "attributes Stable/Stable/Common trace"),
        ("D_PRAGMA_SCOPE", "attributes Stable/Stable/Common timestamp"),
        ("D_PRAGMA_SCOPE", "attributes Stable/Stable/Common provider fbt args"),
        ("D_PRAGMA_INVAL", "attributes Stable/Stable/Common provider fbt nothing"),
        ("D_PRAGMA_MALFORM", "attributes Stable/Stable/Common provider fbt"),
        ("D_PRAGMA_MALFORM", "binding 1.0 x"),
        ("D_PRAGMA_INVAL", 'binding "one" x'),
        ("D_PRAGMA_INVAL", 'binding "256.0" x'),
        ("D_PRAGMA_SCOPE", 'binding "1.0" trace'),
        ("D_PRAGMA_MALFORM", "depends_on"),
        ("D_PRAGMA_MALFORM", "depends_on provider"),
        ("D_PRAGMA_INVAL", "depends_on kernel x"),
        ("D_PRAGMA_DEPEND", "depends_on provider nosuch"),
        ("D_PRAGMA_DEPEND", "depends_on module nosuch"),
        ("D_PRAGMA_DEPEND", "depends_on library x.d"),
        ("D_PRAGMA_INVAL", "nosuch x"),
    ],
)
def test_errors(tag: str, line: str) -> None:
    assert tag_of(f"#pragma D {line}{BODY}") == tag


@pytest.mark.parametrize(
    "line",
    [
        "depends_on provider fbt",
        "depends_on module kernel",
        "depends_on module firmware",
        "attributes Stable/Stable/Common x",
        'binding "1.2.3" x',
    ],
)
def test_fine(line: str) -> None:
    assert check(f"#pragma D {line}{BODY}").clauses


def outside() -> Expressions:
    found = context()
    scope = TypeScope(found.types, 256)
    return Expressions(Session(found, scope, Inlines({}, found.types, scope)))


def test_names_that_never_come() -> None:
    checking = outside()
    pragmas.apply(Pragma(NOWHERE, "attributes", ("Stable/Stable/Common", "later")), checking)
    with pytest.raises(DError) as caught:
        pragmas.finish(checking)
    assert caught.value.tag == "D_PRAGMA_UNUSED"
    pragmas.finish(checking)  # said once


# -- providers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("D_PROV_BADNAME", "provider web1 { probe a(); };"),
        ("D_PROV_BADNAME", f"provider {'p' * 64} {{ probe a(); }};"),
        ("D_PROV_BADNAME", f"provider web {{ probe {'p' * 64}(); }};"),
        ("D_PROV_PRDUP", "provider web { probe a(); probe a(); };"),
        ("D_PROV_PRARGLEN", "provider web { probe a(" + ", ".join(["int"] * 256) + "); };"),
        ("D_PROV_PRARGLEN", "provider web { probe a(int); }; provider web { probe a(); };"),
        ("D_PROV_INCOMPAT", "provider web { probe a(int); }; provider web { probe a(string); };"),
        ("D_PROV_INCOMPAT", "provider web { probe a(); }; provider web { probe b(); };"),
        ("D_PROV_INCOMPAT", "provider web { probe a(); }; provider web { probe a(); probe b(); };"),
        ("D_PROV_PRXLATOR", "struct s { int m; }; provider web { probe a(int x) : (struct s *x); };"),
        ("D_DECL_PROTO_NAME", "provider web { probe a(int x) : (int y); };"),
    ],
)
def test_refused_providers(tag: str, text: str) -> None:
    assert tag_of(text + BODY) == tag


@pytest.mark.parametrize(
    "text",
    [
        "provider web { probe request__start(int fd, string host); probe done(void); };",
        "provider web { probe a(int x, long y) : (long y, int x); };",
        "provider web { probe a(int); }; provider web { probe a(int); };",
        "struct s { int m; }; struct o { int n; }; translator struct o < struct s *p > { n = p->m; };"
        "provider web { probe a(struct s *p) : (struct o *p); };",
        "#pragma D attributes Stable/Stable/Common provider web args\nprovider web { probe a(); };",
    ],
)
def test_providers(text: str) -> None:
    assert check(text + BODY).clauses
