"""What `benches/mutants.py` changes in a line of either language, and what it leaves alone."""

import ast

import pytest
from mutation import python, rust
from mutation.sites import mutants


def of_python(source: str) -> set[tuple[str, str]]:
    """Operators with the mutated lines."""
    return {(each.operator, each.mutated) for each in mutants("a.py", source, python.edits(source))}


def of_rust(source: str) -> set[tuple[str, str]]:
    return {(each.operator, each.mutated) for each in mutants("a.rs", source, rust.edits(source))}


@pytest.mark.parametrize(
    ("line", "mutated"),
    [
        ("a < b", {("< to <=", "a <= b")}),
        ("a <= b", {("<= to <", "a < b")}),
        ("a == b", {("== to !=", "a != b")}),
        ("a is not b", {("is not to is", "a is b")}),
        ("a in b", {("in to not in", "a not in b")}),
        ("a < b == c", {("< to <=", "a <= b == c"), ("== to !=", "a < b != c")}),
        ("a + b - c", {("+ to -", "a - b - c"), ("- to +", "a + b + c")}),
        ("a and b or c", {("and to or", "a or b or c"), ("or to and", "a and b and c")}),
        ("not a", {("not removed", "a")}),
        ("a[2]", {("constant + 1", "a[3]"), ("constant - 1", "a[1]")}),
        ("a[0]", {("constant + 1", "a[1]")}),
        ("a = True", {("True to False", "a = False")}),
        ("a.b = c", {("assignment deleted", "pass")}),
        ("a += b", {("assignment deleted", "pass")}),
        ("a(b)", {("call deleted", "pass")}),
        ("λ = 'é' if a < b else c", {("< to <=", "λ = 'é' if a <= b else c")}),
        ("def f(): return a", {("return None", "def f(): return None")}),
        ("a: Annotated[int, Field(ge=0)]", {("constant + 1", "a: Annotated[int, Field(ge=1)]")}),
    ],
)
def test_python_operators(line: str, mutated: set[tuple[str, str]]) -> None:
    assert of_python(line) == mutated
    for _, each in mutated:
        ast.parse(each)


@pytest.mark.parametrize(
    "line",
    [
        '"""1 < 2, and not True."""',
        "# a < b",
        "a = b",
        "a: Literal[1, 2]",
        "raise ValueError(1 + a)",
        'f"{a + 1}"',
        '"a" + b',
        "@dataclass(frozen=True)\nclass A: pass",
        "def f(): return None",
        "def f(): return",
        "a = 0x10",
    ],
)
def test_python_lines_left_alone(line: str) -> None:
    assert of_python(line) == set()


@pytest.mark.parametrize(
    ("line", "mutated"),
    [
        ("if a < b {", {("< to <=", "if a <= b {")}),
        ("if a && !b {", {("&& to ||", "if a || !b {"), ("not removed", "if a && b {")}),
        ("let a = b || c;", {("|| to &&", "let a = b && c;")}),
        ("let a = b + c - d;", {("+ to -", "let a = b - c - d;"), ("- to +", "let a = b + c + d;")}),
        ("for a in 0..n {", {("constant + 1", "for a in 1..n {")}),
        ("let a = 1_000_u64;", {("constant + 1", "let a = 1001_u64;"), ("constant - 1", "let a = 999_u64;")}),
        ("let a = true;", {("true to false", "let a = false;")}),
        ("return a;", {("return Default::default()", "return Default::default();")}),
        ("Ok(a)", {("return Default::default()", "Ok(Default::default())")}),
        ("Some(a(b))", {("return None", "None")}),
        ("self.a(b)?;", {("call deleted", "{}")}),
        ("self.a[b] = c;", {("assignment deleted", "{}")}),
        ("a += b;", {("assignment deleted", "{}"), ("+= to -=", "a -= b;")}),
        ("let a = '\"' < b; // \"", {("< to <=", "let a = '\"' <= b; // \"")}),
    ],
)
def test_rust_operators(line: str, mutated: set[tuple[str, str]]) -> None:
    assert of_rust(line) == mutated


@pytest.mark.parametrize(
    "line",
    [
        "// a < b",
        "/* a\n< b */",
        'let a = "1 < 2 \\" && true";',
        'let a = r#"1 " < 2"#;',
        "#[serde(default = true, skip = 1)]",
        "use a::{\n    b2, true,\n};",
        "fn a(b: Vec<u8>) -> impl Read + Send {",
        "fn a<'b>(c: &'b str) -> Box<dyn Read + 'b> {",
        "spawn(|| a);",
        "a.0.b2",
        "let a = 1.5;",
        "let a = 0xFF;",
        "assert!(a);",
        "Ok(())",
        "    .a(b)\n    .c(d);",
        "#[cfg(test)]\nmod tests {\n    fn a() { b(1 < 2); }\n}",
        "#[cfg(test)]\n#[allow(b)]\npub fn a() {\n    b += 1;\n}",
    ],
)
def test_rust_lines_left_alone(line: str) -> None:
    assert not {each for each in of_rust(line) if each[0] != "call deleted"}


def test_a_continued_expression_is_no_statement() -> None:
    assert of_rust("let a = b(\n    c(d)?;\n") == set()


def test_code_behind_a_test_module_is_mutated() -> None:
    assert of_rust("#[cfg(test)]\nmod tests;\n\nconst A: u8 = 3;\n") == {
        ("constant + 1", "const A: u8 = 4;"),
        ("constant - 1", "const A: u8 = 2;"),
    }
