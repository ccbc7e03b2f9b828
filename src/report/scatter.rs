//! Two figures of the same things against each other, as SVG for a page.

use std::fmt::Write as _;

/// A dot: where it is in per cent, what it says, and the place of the page it leads to.
#[derive(Clone, Debug)]
pub struct Dot {
    pub x: f64,
    pub y: f64,
    pub title: String,
    pub anchor: String,
}

const SIDE: f64 = 300.0;
const MARGIN: f64 = 44.0;

/// From 0 to 100 both ways, with the line on which both are equal.
pub fn svg(x_name: &str, y_name: &str, dots: &[Dot]) -> String {
    let x_of = |share: f64| MARGIN + share.clamp(0.0, 100.0) / 100.0 * SIDE;
    let y_of = |share: f64| 10.0 + SIDE - share.clamp(0.0, 100.0) / 100.0 * SIDE;
    let (width, height) = (SIDE + MARGIN + 10.0, SIDE + MARGIN + 10.0);
    let mut text = format!(
        "<svg class=\"scatter\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{} against {}\">\n",
        escaped(y_name),
        escaped(x_name)
    );
    for share in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let (x, y) = (x_of(share), y_of(share));
        let _ = writeln!(
            text,
            "<path class=\"grid\" d=\"M{x} {}V{}M{} {y}H{}\"/>\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{share}</text>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{share}</text>",
            y_of(0.0),
            y_of(100.0),
            x_of(0.0),
            x_of(100.0),
            y_of(0.0) + 15.0,
            x_of(0.0) - 5.0,
            y + 4.0,
        );
    }
    let _ = writeln!(
        text,
        "<path class=\"equal\" d=\"M{} {}L{} {}\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
         <text transform=\"translate(12 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        x_of(0.0),
        y_of(0.0),
        x_of(100.0),
        y_of(100.0),
        x_of(50.0),
        height - 6.0,
        escaped(x_name),
        y_of(50.0),
        escaped(y_name),
    );
    for dot in dots {
        let _ = writeln!(
            text,
            "<a href=\"#{}\"><circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"><title>{}</title></circle></a>",
            escaped(&dot.anchor),
            x_of(dot.x),
            y_of(dot.y),
            escaped(&dot.title),
        );
    }
    text + "</svg>\n"
}

/// Text that may stand anywhere in a page.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dot_leads_to_its_place_and_no_name_ends_the_markup() {
        let dot = Dot {
            x: 100.0,
            y: 0.0,
            title: "a <b> & \"c\"".into(),
            anchor: "set-3".into(),
        };
        let text = svg("edf<", "temponet", &[dot]);
        assert!(text.contains("href=\"#set-3\""));
        assert!(text.contains("cx=\"344.0\" cy=\"310.0\""), "{text}");
        assert!(text.contains("a &lt;b&gt; &amp; &quot;c&quot;"));
        assert!(text.contains("edf&lt;") && !text.contains("edf<\""));
    }
}
