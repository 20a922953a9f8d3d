use super::*;
use proptest::prelude::*;

/// Two ways to write one answer.
const SAME: &[(&str, &str)] = &[
    // Whole numbers and decimals.
    ("42", "42"),
    ("042", "42"),
    ("+42", "42"),
    ("42.0", "42"),
    ("-3", "−3"),
    ("- 3", "-3"),
    ("1,000", "1000"),
    ("1,234,567.5", "1234567.5"),
    (r"1{,}000", "1000"),
    (r"1\,000", "1000"),
    (r"10,\!000", "10000"),
    ("100, 200", "200,100"),
    (".5", "0.5"),
    ("5.", "5"),
    ("$42$", "42"),
    (r"\(42\)", "42"),
    (r"\[ 42 \]", "42"),
    (r"\boxed{42}", "42"),
    ("123456789012345678901234567890123456789012345", "123456789012345678901234567890123456789012345.0"),
    // Fractions.
    (r"\frac{1}{2}", "1/2"),
    (r"\frac12", "0.5"),
    (r"\frac1{2}", "0.5"),
    (r"\frac{1}2", "0.5"),
    (r"\dfrac{3}{4}", r"\tfrac{6}{8}"),
    (r"-\frac{1}{2}", r"\frac{-1}{2}"),
    (r"\frac{1}{-2}", "-1/2"),
    (r"\frac{\frac12}{3}", "1/6"),
    (r"2\frac{1}{3}", "7/3"),
    (r"2\frac13", "7/3"),
    (r"-2\frac{1}{3}", "-7/3"),
    ("2 1/3", "7/3"),
    ("½", "0.5"),
    ("1/3", "0.33333333"),
    (r"0.\overline{3}", "1/3"),
    (r"0.1\overline{6}", r"\frac16"),
    ("12.3456789", "12.345679"),
    // Roots and powers.
    (r"\sqrt{16}", "4"),
    (r"\sqrt{8}", r"2\sqrt{2}"),
    (r"\sqrt2", r"\sqrt{2}"),
    ("√2", r"\sqrt{2}"),
    ("sqrt(2)/2", r"\frac{1}{\sqrt{2}}"),
    (r"\sqrt[3]{27}", "3"),
    (r"\sqrt[3]{-8}", "-2"),
    (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt{3}}"),
    ("2^{10}", "1024"),
    ("2^10", "1024"),
    ("2**10", "1024"),
    ("x²", "x^2"),
    ("2^{-1}", "0.5"),
    ("4^{1/2}", "2"),
    ("8^{2/3}", "4"),
    (r"1.2\times10^5", "120000"),
    (r"1.2 \cdot 10^{-3}", "0.0012"),
    ("6.02 × 10^{23}", "602000000000000000000000"),
    (r"2^{200}", r"4^{100}"),
    (r"2^{1000000000}", r"4^{500000000}"),
    ("5!", "120"),
    ("300!", "300 \\cdot 299!"),
    ("-2^2", "-4"),
    ("(-2)^2", "4"),
    // Constants.
    (r"2\pi", "6.283185307"),
    ("2π", r"\pi \cdot 2"),
    (r"\frac{\pi}{4}", r"0.25\pi"),
    ("pi/2", r"\frac{\pi}{2}"),
    ("e^2", r"e \cdot e"),
    (r"\ln(e)", "1"),
    (r"\log_2 8", "3"),
    (r"\log_{10}(100)", r"\log 100"),
    (r"\sin^2 x + \cos^2 x", "1"),
    (r"\sin 2x", r"2\sin x\cos x"),
    (r"\sin(30^\circ)", r"\frac{1}{2}"),
    ("|-3|", "3"),
    (r"\left|-3\right|", "3"),
    (r"\lfloor 3.7 \rfloor", "3"),
    (r"\lceil -3.7 \rceil", "-3"),
    ("1011_2", "11"),
    ("1011_2", "1011_{2}"),
    // Percents, degrees, units, money.
    (r"50\%", "50%"),
    (r"50\%", "0.5"),
    (r"50\%", r"\frac12"),
    (r"90^\circ", "90"),
    (r"90^{\circ}", "90°"),
    (r"45 \text{ degrees}", "45"),
    (r"5\text{ cm}", "5"),
    (r"5 \mathrm{cm}", "5 cm"),
    ("5 cm", "5cm"),
    (r"5\text{ cm}^2", r"5 \text{ cm}^{2}"),
    ("5 meters", r"5 \text{ m}"),
    ("12 apples", "12"),
    ("5 dollars", r"\$5"),
    ("$5", "5"),
    (r"\$1,250.50", "1250.5"),
    // Variables.
    ("x+1", "1+x"),
    ("2(x+1)", "2x+2"),
    ("(x+1)^2", "x^2+2x+1"),
    ("(x-1)(x+1)", "x^2 - 1"),
    ("xy", "yx"),
    ("2xy", "2yx"),
    (r"\frac{x^2-1}{x-1}", "x+1"),
    (r"\frac{n(n+1)}{2}", r"\frac{n^2+n}{2}"),
    (r"x\cdot y", "x*y"),
    ("x/2", "0.5x"),
    (r"\sqrt{x^2+2x+1}", "x+1"),
    ("a_1 + a_2", "a_{2} + a_{1}"),
    (r"2\theta", r"\theta + \theta"),
    (r"\alpha", "α"),
    ("3+4i", "4i + 3"),
    ("x^{100} \\cdot x^{100}", "x^{200}"),
    // Equations and inequalities.
    ("x=5", "5"),
    ("x = 5", "x=5"),
    (r"x \in [1,2]", "[1,2]"),
    ("f(x) = 2x", "2x"),
    ("x = 2 + 3 = 5", "5"),
    ("y = 2x+1", "2x - y + 1 = 0"),
    ("x^2+y^2=1", "2x^2 + 2y^2 = 2"),
    ("x > 3", "3 < x"),
    ("x>3", r"(3, \infty)"),
    (r"x \le 3", r"(-\infty, 3]"),
    (r"1 < x \leq 2", "(1,2]"),
    ("x <= 3", r"x \leq 3"),
    ("x=1, y=2", "y=2, x=1"),
    (r"x=1 \text{ or } x=2", "1, 2"),
    // Sets, tuples, intervals.
    (r"\{1,2\}", r"\{2, 1\}"),
    ("{1,2}", r"\{2,1\}"),
    ("1, 2", r"\{1,2\}"),
    ("1, 2, and 3", "3,2,1"),
    ("2 or 3", "3, 2"),
    (r"\{5\}", "5"),
    ("(1,2)", r"\left( 1, 2 \right)"),
    ("(1, 2, 3)", "(1,2,3)"),
    (r"(\frac12, -3)", "(0.5, -3)"),
    ("((1,2),(3,4))", "((1,2),(3,4))"),
    ("[0,1)", r"\left[0, 1\right)"),
    (r"(-\infty, 3)", r"(-\infty,3)"),
    (r"(-\infty,0)\cup(1,\infty)", r"(1,\infty) \cup (-\infty,0)"),
    (r"\infty", "∞"),
    (r"+\infty", r"\infty"),
    (r"\pm 3", "3, -3"),
    (r"1 \pm \sqrt{2}", r"1-\sqrt2, 1+\sqrt2"),
    (r"x = \pm 3", "-3, 3"),
    // Matrices.
    (
        r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
        r"\begin{bmatrix} 1 & 2 \\ 3 & \frac{8}{2} \\ \end{bmatrix}",
    ),
    (r"\begin{pmatrix} x \\ 1 \end{pmatrix}", r"\begin{array}{c} x \\ 1 \end{array}"),
    // Words and letters.
    ("A", "(A)"),
    (r"\text{A}", "A"),
    (r"\text{(B)}", "B"),
    (r"\textbf{(C)}", "C"),
    ("D.", "D"),
    (r"\text{Monday}", "monday"),
    ("Yes", "yes"),
    (r"\text{True}", "true"),
    ("no solution", r"\text{No solution}"),
    ("Evelyn", r"\text{Evelyn}"),
    ("No", "no"),
    ("no", r"\text{NO}"),
    // As they stand in data sets.
    (r"\dfrac{5\sqrt{3}}{2}", r"\frac52\sqrt3"),
    (r"\left(\frac{1}{2},\infty\right)", r"(0.5, \infty)"),
    (r"x\in(-\infty,2)\cup(3,\infty)", r"(-\infty,2) \cup (3,\infty)"),
    (r"-\infty < x < 2", r"(-\infty, 2)"),
    (r"(3, \frac{\pi}{2})", r"\left( 3, \frac{\pi}{2} \right)"),
    (r"15\mbox{ cm}^2", "15"),
    (r"\$32,\!348", "32348"),
    (r"36 \text{ square units}", "36"),
    (r"\frac{\ln 2}{3}", r"\frac13 \ln(2)"),
    (r"\log_{3}{9}", "2"),
    ("(2,3), (4,5)", "(4,5), (2,3)"),
    (r"\binom{10}{3}", "120"),
    (r"\emptyset", r"\{\}"),
    (r"\sin \pi", "0"),
    (r"\cos 90^\circ", "0"),
    (r"2^{2024}-1", r"2 \cdot 2^{2023} - 1"),
    ("June 20", r"\text{June 20}"),
];

/// Answers that are not the truth, however much they look like it.
const DIFFERENT: &[(&str, &str)] = &[
    ("", "42"),
    ("", ""),
    (" ", "0"),
    ("42", "43"),
    ("42", "-42"),
    ("4 2", "42"),
    ("0.999999", "1"),
    ("0.9999999999", "1"),
    ("1.0000001", "1"),
    ("41.9999999", "42"),
    ("0.333", "1/3"),
    ("0.33", "1/3"),
    ("0.1250001", "1/8"),
    ("3.14", r"\pi"),
    ("22/7", r"\pi"),
    ("3.1416", r"\pi"),
    ("1.41", r"\sqrt{2}"),
    (r"\sqrt{2}", r"\sqrt{3}"),
    (r"\frac{1}{2}", r"\frac{2}{1}"),
    (r"\frac{1}{0}", r"\frac{2}{0}"),
    ("1/0", "0"),
    (r"2\frac{1}{3}", r"\frac{2}{3}"),
    (r"50\%", "50"),
    (r"0.5\%", "0.5"),
    ("5 cm", "5 km"),
    (r"5 \text{ m}", r"5 \text{ m}^2"),
    (r"\$5", "€5"),
    ("1,000", "(1,000)"),
    ("(1,000)", "1000"),
    ("1,2", "12"),
    ("(1,2)", "(2,1)"),
    ("(1,2)", "[1,2]"),
    ("(1,2]", "[1,2)"),
    ("(1,2)", r"\{1,2\}"),
    ("(1,2)", "1, 2"),
    ("(1,2,3)", "(1,2)"),
    (r"\{1,2,3\}", r"\{1,2\}"),
    ("1", "1, 2"),
    ("1, 2", "1"),
    (r"\{1\}", r"\{\}"),
    (r"(-\infty, 3)", r"(\infty, 3)"),
    (r"\infty", r"-\infty"),
    (r"\infty", "10^{400}"),
    ("x+1", "x-1"),
    ("x", "y"),
    ("x+y", "x+z"),
    ("x^2", "2x"),
    ("2x", "2"),
    ("x_1", "x_2"),
    ("x", "X"),
    ("x=5", "6"),
    ("x=5", "x=6"),
    ("x > 3", "x < 3"),
    ("x > 3", r"x \geq 3"),
    ("x > 3", r"[3, \infty)"),
    ("y = 2x+1", "y = 2x-1"),
    ("0 = 0", "x = x"),
    (r"\pm 3", "3"),
    (r"2^{200}", r"2^{200}+1"),
    (r"2^{1000000000}", r"2^{1000000001}"),
    ("10^{30}+1", "10^{30}"),
    ("300!", "299!"),
    ("1000!", "999!"),
    ("2000!", "3000!"),
    ("9^{9^{9^{9}}}", "8^{9^{9^{9}}}"),
    (r"\begin{pmatrix} 1 & 2 \end{pmatrix}", r"\begin{pmatrix} 2 & 1 \end{pmatrix}"),
    (r"\begin{pmatrix} 1 & 2 \end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
    (r"\begin{pmatrix} 1 & 2 \end{pmatrix}", "(1,2)"),
    ("A", "B"),
    ("(A)", "(B)"),
    ("A, B", "A"),
    ("Monday", "Mondya"),
    ("cat", "act"),
    ("yes", "no"),
    (r"\text{Monday}", "1"),
    ("42 or 43", "42"),
    ("1 2 3", "123"),
    ("0.333...", "1/3"),
    (r"\unknown{5}", "5"),
    ("1011_2", "1011"),
    ("12_2", "12"),
    // Two answers in one, or an answer with another in its unit.
    (r"42 \text{ (or maybe 43)}", "42"),
    (r"42 \text{ or so}", "42"),
    (r"42 \text{ not}", "42"),
    ("x = 4 = 5", "5"),
    ("5 = 5", "x = 5"),
    ("x = x", "x = 5"),
    ("yes or no", "yes"),
    (r"\sqrt{2}\times10^{-19}", r"\sqrt{3}\times10^{-19}"),
    (r"1.6\times10^{-19}", r"3.2\times10^{-19}"),
    ("0.0000000000000001", "0"),
    (r"10^{-20}", "0"),
    (r"\emptyset", "0"),
];

#[test]
fn two_ways_to_write_an_answer_are_the_same() {
    let missed: Vec<_> = SAME.iter().filter(|(a, b)| !verify(a, b) || !verify(b, a)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_different_answer_is_wrong() {
    let fooled: Vec<_> = DIFFERENT.iter().filter(|(a, b)| verify(a, b) || verify(b, a)).collect();
    assert!(fooled.is_empty(), "{fooled:#?}");
}

/// The examples of the documentation: `a` = `b` = `c`, `d` ≠ `e`.
#[test]
fn the_documentation_tells_the_truth() {
    let text = include_str!("../../../../../docs/reference/rewards.md");
    let mut checked = 0;
    for line in text.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let pieces: Vec<&str> = line.split('`').collect();
        for triple in pieces.windows(3).skip(1).step_by(2) {
            let expect = match triple[1].trim() {
                "=" => true,
                "≠" => false,
                _ => continue,
            };
            assert_eq!(verify(triple[0], triple[2]), expect, "{triple:?}");
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} examples were found");
}

#[test]
fn a_rule_can_let_a_bare_number_stand_for_its_percent() {
    let rules = MathsRules { bare_percent: true, ..MathsRules::default() };
    assert!(rules.verify("50", r"50\%") && rules.verify("0.5", r"50\%"));
    assert!(!rules.verify("5", r"50\%"));
}

#[test]
fn the_answer_is_what_was_marked_last() {
    for (text, expect) in [
        (r"so \boxed{42}.", Some("42")),
        (r"\boxed{1} \boxed{2} \boxed{3}", Some("3")),
        (r"\boxed{\frac{1}{2}}", Some(r"\frac{1}{2}")),
        (r"\boxed{\{1, 2\}}", Some(r"\{1, 2\}")),
        (r"\boxed{\text{a } \}}", Some(r"\text{a } \}")),
        (r"\fbox{7}", Some("7")),
        (r"\boxed 5 and", Some("5")),
        (r"$\boxed5$", Some("5")),
        (r"\boxed{}", Some("")),
        (r"\boxed{1} and \boxed{2", None),
        (r"\boxed", None),
        ("#### 1,234\nbye", Some("1,234")),
        ("work #### 1\n#### 2", Some("2")),
        ("The final answer is $42$. I hope it is correct.", Some("42")),
        ("the answer is 3.14.", Some("3.14")),
        ("**Answer:** 12", Some("12")),
        ("Answer: 1\nAnswer: 2", Some("2")),
        ("Final Answer: x = 5", Some("x = 5")),
        (r"<think>\boxed{1}</think> The answer is 2.", Some("2")),
        (r"<think>\boxed{1}</think> done", None),
        ("it is 42", None),
        ("", None),
    ] {
        assert_eq!(extract(text), expect, "{text}");
    }
}

#[test]
fn the_last_number_counts_only_if_asked_for() {
    let rules = MathsRules { last_number: true, ..MathsRules::default() };
    for (text, expect) in [
        ("I think 3, no: 1,234.5 apples.", Some("1,234.5")),
        ("it is -3/4.", Some("-3/4")),
        (r"\boxed{7} or 8", Some("7")),
        ("none", None),
    ] {
        assert_eq!(rules.extract(text), expect, "{text}");
    }
}

#[test]
fn no_answer_is_too_deep_or_too_large_to_be_judged() {
    let deep = |open: &str, close: &str| [open.repeat(400).as_str(), "1", &close.repeat(400)].concat();
    let long_set = format!(r"\{{{}\}}", (0..300).map(|i| i.to_string()).collect::<Vec<_>>().join(","));
    for hostile in [
        deep("(", ")"),
        deep("{", "}"),
        deep(r"\{", r"\}"),
        deep("-", ""),
        deep(r"\frac", ""),
        deep("2^", ""),
        "9".repeat(1000),
        "1000!".repeat(200),
        "x^{99999999999999999999999999999999999999}".repeat(20),
        "9^{9^{9^{9^{9}}}}".to_owned(),
        deep("9^{", "}"),
        long_set,
        r"\boxed{".repeat(100_000),
        "\u{0}\u{ffff}𝟙".to_owned(),
    ] {
        verify(&hostile, "1");
        assert!(!verify(&[&hostile, "+1"].concat(), &[&hostile, "+2"].concat()));
        extract(&hostile);
    }
}

fn notation() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "1",
        "2",
        "0",
        "10",
        ".5",
        "x",
        "y",
        "e",
        "+",
        "-",
        "*",
        "/",
        "^",
        "_",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        " ",
        "=",
        "<",
        "|",
        "!",
        "%",
        "°",
        "&",
        r"\\",
        r"\frac",
        r"\sqrt",
        r"\pi",
        r"\pm",
        r"\infty",
        r"\cup",
        r"\{",
        r"\}",
        r"\text{cm}",
        r"\sin",
        r"\log",
        r"\overline",
        r"\begin{pmatrix}",
        r"\end{pmatrix}",
        "ü",
        "$",
        r"\boxed",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_panics_and_order_does_not_matter(a in notation(), b in notation()) {
        prop_assert_eq!(verify(&a, &b), verify(&b, &a));
        extract(&a);
    }

    #[test]
    fn any_text_is_read_without_a_panic(a in ".{0,60}", b in ".{0,60}") {
        prop_assert_eq!(verify(&a, &b), verify(&b, &a));
        extract(&a);
    }

    #[test]
    fn a_whole_number_is_equal_to_itself_only(a in any::<i64>(), b in any::<i64>()) {
        prop_assert!(verify(&a.to_string(), &a.to_string()));
        let sum = format!("{a}+0");
        prop_assert!(verify(&sum, &a.to_string()));
        prop_assert_eq!(verify(&sum, &b.to_string()), a == b);
    }

    #[test]
    fn fractions_are_equal_as_their_products_are(
        a in -50_i64..50, b in 1_i64..50, c in -50_i64..50, d in 1_i64..50,
    ) {
        let same = verify(&format!(r"\frac{{{a}}}{{{b}}}"), &format!("{c}/{d}"));
        prop_assert_eq!(same, a * d == b * c);
    }

    #[test]
    fn a_polynomial_is_equal_to_itself_multiplied_out(a in -9_i64..9, b in -9_i64..9, c in -9_i64..9) {
        let factored = format!("(x+({a}))(x+({b}))");
        let sum = |constant: i64| format!("x^2 + ({})x + ({constant})", a + b);
        prop_assert!(verify(&factored, &sum(a * b)));
        prop_assert_eq!(verify(&factored, &sum(a * b + c)), c == 0);
    }
}
