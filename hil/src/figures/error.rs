//! Why a figure was not drawn.

#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    #[error("figure `{figure}`: {series} has no values to draw")]
    Empty { figure: String, series: String },
    #[error(
        "figure `{figure}`: {series}, value {index} is {value}; only numbers within ±1e100 can be drawn"
    )]
    NotFinite {
        figure: String,
        series: String,
        index: usize,
        value: f64,
    },
    #[error(
        "figure `{figure}`: {series}, value {index} is {value}; its axis needs values of 1e-100 or more"
    )]
    NotPositive {
        figure: String,
        series: String,
        index: usize,
        value: f64,
    },
    #[error("figure `{figure}`: {series} has {seen} values, {expected} are needed")]
    Length {
        figure: String,
        series: String,
        seen: usize,
        expected: usize,
    },
    #[error("the font of the figures cannot be read")]
    Font,
    #[error("the figure cannot be drawn: {0}")]
    Draw(String),
}

/// Largest magnitude that is drawn; its inverse is the smallest on a logarithmic axis.
const LARGEST: f64 = 1e100;

/// Checks that `values` can be drawn, for the figure called `figure`.
pub(super) fn check_series(figure: &str, series: &str, values: &[f64]) -> Result<(), FigureError> {
    if values.is_empty() {
        return Err(FigureError::Empty {
            figure: figure.to_string(),
            series: series.to_string(),
        });
    }
    check_values(figure, series, values)
}

/// As [`check_series`], with no values allowed.
pub(super) fn check_values(figure: &str, series: &str, values: &[f64]) -> Result<(), FigureError> {
    match values
        .iter()
        .position(|v| !(-LARGEST..=LARGEST).contains(v))
    {
        None => Ok(()),
        Some(index) => Err(FigureError::NotFinite {
            figure: figure.to_string(),
            series: series.to_string(),
            index,
            value: values[index],
        }),
    }
}

/// Checks that `values` can stand on a logarithmic axis.
pub(super) fn check_positive(
    figure: &str,
    series: &str,
    values: &[f64],
) -> Result<(), FigureError> {
    check_values(figure, series, values)?;
    match values.iter().position(|&v| v < 1.0 / LARGEST) {
        None => Ok(()),
        Some(index) => Err(FigureError::NotPositive {
            figure: figure.to_string(),
            series: series.to_string(),
            index,
            value: values[index],
        }),
    }
}
