//! Lines over a common x, as an SVG.

use anyhow::{anyhow, Result};
use plotters::prelude::*;

pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

const SIZE: (u32, u32) = (800, 480);
/// Told apart by most eyes (Okabe and Ito).
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 86, 86),
];

/// Needs at least one point.
pub fn lines(title: &str, x: &str, y: &str, lines: &[Line]) -> Result<String> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let range = |of: fn(&(f64, f64)) -> f64| {
        let (low, high) = points()
            .map(of)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let margin = (0.05 * (high - low)).max(1e-9);
        low - margin..high + margin
    };
    if points().next().is_none() {
        return Err(anyhow!("there is nothing to draw"));
    }
    let mut svg = String::new();
    draw(
        &mut svg,
        title,
        (x, range(|p| p.0)),
        (y, range(|p| p.1)),
        lines,
    )
    .map_err(|error| anyhow!("cannot draw {title}: {error}"))?;
    Ok(svg)
}

type Axis<'a> = (&'a str, std::ops::Range<f64>);

fn draw(
    svg: &mut String,
    title: &str,
    x: Axis<'_>,
    y: Axis<'_>,
    lines: &[Line],
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(x.1, y.1)?;
    chart
        .configure_mesh()
        .x_desc(x.0)
        .y_desc(y.0)
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        chart
            .draw_series(LineSeries::new(
                line.points.iter().copied(),
                colour.stroke_width(2),
            ))?
            .label(&line.name)
            .legend(|(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .position(SeriesLabelPosition::LowerRight)
        .draw()?;
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_drawn_and_named() {
        let line = |name: &str| Line {
            name: name.into(),
            points: vec![(0.0, 1.0), (1.0, 2.0)],
        };
        let svg = lines("title", "x", "y", &[line("one & two"), line("three")]).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in ["title", "one &amp; two", "three"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(lines("title", "x", "y", &[]).is_err());
    }
}
