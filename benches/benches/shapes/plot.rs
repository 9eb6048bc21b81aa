//! How time per item grows with size, as a picture.

use std::error::Error;
use std::path::Path;

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::row::Row;

/// The shapes in the picture.
const SHAPES: [&str; 4] = ["chain", "fan", "gather", "relist"];

/// The size of the picture in pixels: two shapes beside each other, twice.
const SIZE: (u32, u32) = (1_000, 720);

/// Room above the highest line, for the legend.
const HEADROOM: f64 = 1.5;

/// The lines of the picture, with their colours.
const LINES: [(&str, RGBColor, Time); 3] = [
    ("workflow", RGBColor(31, 119, 180), |row| Some(row.ours)),
    ("a task per step, by hand", RGBColor(255, 127, 14), |row| row.spawn),
    ("one task, by hand", RGBColor(44, 160, 44), |row| row.floor),
];

/// Selects the time of one contender.
type Time = fn(&Row) -> Option<f64>;

/// One shape of the picture.
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<LogCoord<f64>, RangedCoordf64>>;

/// Draws the shapes that were measured in several sizes.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn draw(path: &Path, rows: &[Row]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    for (shape, area) in SHAPES.iter().zip(root.split_evenly((2, 2))) {
        let of_shape: Vec<&Row> = rows
            .iter()
            .filter(|row| row.name.split_once('/').is_some_and(|(name, _)| name == *shape))
            .collect();
        let most =
            of_shape.iter().flat_map(|row| LINES.map(|(.., time)| time(row))).flatten().fold(0.0, f64::max);
        let sizes: Vec<f64> = of_shape.iter().map(|row| size(row)).collect();
        let [Some(least), Some(largest)] = [sizes.first(), sizes.last()] else { continue };
        if least >= largest {
            continue;
        }
        let mut chart: Chart<'_, '_> = ChartBuilder::on(&area)
            .caption(format!("{shape}: {} by size", of_shape[0].unit), ("sans-serif", 18))
            .margin(12)
            .margin_right(28)
            .x_label_area_size(28)
            .y_label_area_size(52)
            .build_cartesian_2d((*least..*largest).log_scale(), 0.0..most * HEADROOM)?;
        let whole = |number: &f64| format!("{number:.0}");
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).x_labels(sizes.len()).x_label_formatter(&whole);
        mesh.y_labels(6).y_label_formatter(&whole).draw()?;
        for (name, colour, time) in LINES {
            let points: Vec<(f64, f64)> =
                of_shape.iter().filter_map(|row| Some((size(row), time(row)?))).collect();
            let circles = points.iter().map(|point| Circle::new(*point, 3, colour.filled()));
            chart.draw_series(circles)?;
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
        }
        let mut labels = chart.configure_series_labels();
        labels.position(SeriesLabelPosition::UpperLeft).background_style(WHITE).border_style(BLACK.mix(0.3));
        labels.draw()?;
    }
    Ok(root.present()?)
}

#[expect(clippy::cast_precision_loss, reason = "sizes are small")]
fn size(row: &Row) -> f64 {
    row.size().unwrap_or(1) as f64
}
