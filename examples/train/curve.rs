//! A picture of how losses fall.

use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use std::path::Path;
use std::sync::Once;
use tidemill::{Error, ErrorKind, Result};

/// Pixels.
const SIZE: (u32, u32) = (800, 500);
/// The colours of the curves, in turn.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 90, 160), RGBColor(200, 90, 0), RGBColor(0, 130, 80), RGBColor(150, 50, 130)];

/// Draws losses by epochs, each with its name, to a PNG.
///
/// # Errors
/// `ErrorKind::Io` where the file can't be written.
pub fn draw(path: &Path, curves: &[(&str, Vec<f32>)]) -> Result<()> {
    static FONT: Once = Once::new();
    FONT.call_once(|| {
        // A font that is no font would be seen where it is used.
        let _ = register_font("sans-serif", FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    });
    let mut pixels = vec![0; (SIZE.0 * SIZE.1 * 3) as usize];
    plot(&mut pixels, curves)
        .map_err(|cause| Error::new(ErrorKind::Internal, format!("the curve can't be drawn: {cause}")))?;
    image::save_buffer(path, &pixels, SIZE.0, SIZE.1, image::ExtendedColorType::Rgb8)
        .map_err(|cause| Error::new(ErrorKind::Io, format!("{}: {cause}", path.display())))
}

fn plot(pixels: &mut [u8], curves: &[(&str, Vec<f32>)]) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let finite = |losses: &[f32]| losses.iter().copied().filter(|loss| loss.is_finite()).fold(0.0, f32::max);
    let (mut epochs, mut highest) = (1, 0.0f32);
    for (_, losses) in curves {
        epochs = epochs.max(losses.len());
        highest = highest.max(finite(losses));
    }
    let highest = if highest > 0.0 { highest * 1.05 } else { 1.0 };
    let canvas = BitMapBackend::with_buffer(pixels, SIZE).into_drawing_area();
    canvas.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&canvas)
        .caption("mean loss of the batches", ("sans-serif", 22))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(1.0..(epochs.max(2) as f32), 0.0..highest)?;
    chart.configure_mesh().x_desc("epoch").y_desc("loss").light_line_style(WHITE).draw()?;
    for (n, (name, losses)) in curves.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let points = losses.iter().enumerate().map(|(epoch, &loss)| ((epoch + 1) as f32, loss));
        let line = LineSeries::new(points.filter(|point| point.1.is_finite()), colour.stroke_width(2));
        let key = move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2));
        chart.draw_series(line)?.label(*name).legend(key);
    }
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
    canvas.present()?;
    Ok(())
}
