//! Figures: the same bytes every time, text that stays text, and errors instead of panics.

use etime_hil::figures::*;

/// A wave of `n` values around `level`.
fn wave(n: usize, level: f64, shift: f64) -> Vec<f64> {
    (0..n)
        .map(|i| level * (1.2 + (i as f64 * 0.3 + shift).sin()))
        .collect()
}

fn waves(count: usize, n: usize, level: f64) -> Vec<Vec<f64>> {
    (0..count).map(|i| wave(n, level, i as f64)).collect()
}

fn temperature() -> Temperature {
    Temperature {
        title: "Temperature".to_string(),
        measured: waves(30, 40, 1.0),
        predicted: waves(5, 40, 0.9),
        t_min: Some(0.1),
        t_max: Some(3.0),
    }
}

fn entropy() -> Entropy {
    Entropy {
        title: "Entropy & <bounds>".to_string(),
        measured: waves(1, 40, 2.0),
        predicted: waves(1, 40, 1.9),
        target_nats: Some(2.0),
        bounds: Some(Bounds {
            lower_nats: wave(40, 1.8, 0.0),
            upper_nats: wave(40, 2.3, 0.0),
        }),
    }
}

fn gain() -> LoopGain {
    LoopGain {
        title: "Loop gain".to_string(),
        measured: waves(3, 40, 0.1),
        predicted: vec![],
    }
}

fn clock() -> Clock {
    Clock {
        title: "Clock".to_string(),
        tau_nats: (0..40).map(f64::from).collect(),
        net_drop_nats: wave(40, -0.4, 0.0),
        ..Clock::default()
    }
}

fn row(label: &str, error: Option<(f64, f64)>, mark: Mark) -> SignalRow {
    SignalRow {
        label: label.to_string(),
        unit: "nats".to_string(),
        error,
        tolerance: 0.05,
        mark,
    }
}

fn verdicts() -> Verdicts {
    Verdicts {
        title: "Verdicts".to_string(),
        rows: vec![
            row("mean u", Some((0.01, 0.004)), Mark::Pass),
            row("sd of H", Some((-7.0, 0.004)), Mark::Fail),
            row("lag 1", None, Mark::Inconclusive),
        ],
    }
}

fn distribution() -> Distribution {
    Distribution {
        title: "Mean H".to_string(),
        quantity: "mean H, nats".to_string(),
        measured: wave(50, 1.0, 0.0),
        predicted: wave(90, 1.1, 0.0),
    }
}

fn all() -> Vec<Figure> {
    vec![
        Figure::Temperature(temperature()),
        Figure::Entropy(entropy()),
        Figure::LoopGain(gain()),
        Figure::Clock(clock()),
        Figure::Verdicts(verdicts()),
        Figure::Distribution(distribution()),
    ]
}

#[test]
fn equal_numbers_give_equal_bytes_in_both_formats() {
    for figure in all() {
        let drawn = draw(&figure).unwrap();
        assert_eq!(drawn, draw(&figure).unwrap());
        assert_eq!(drawn.svg, svg(&figure).unwrap());
        let reader = png::Decoder::new(drawn.png.as_slice()).read_info().unwrap();
        assert_eq!(reader.info().width, 2000);
    }
}

#[test]
fn the_svg_holds_its_words_as_text_and_a_viewer_size() {
    let text = svg(&Figure::Entropy(entropy())).unwrap();
    for part in [
        "Entropy &amp; &lt;bounds&gt;",
        "entropy H, nats",
        "H* 2",
        "bounds of the estimator",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.starts_with("<svg width=\"1000\" height=\"560\" viewBox=\"0 0 10000 5600\""));
}

#[test]
fn verdicts_are_written_in_words_beside_their_numbers() {
    let text = svg(&Figure::Verdicts(verdicts())).unwrap();
    for part in [
        "PASS",
        "FAIL",
        "INCONCLUSIVE",
        "+0.0100 ± 0.0080 (0.05) nats",
        "nothing to compare",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn only_some_of_many_measured_sequences_are_drawn_and_the_legend_says_how_many() {
    let text = svg(&Figure::Temperature(temperature())).unwrap();
    assert!(text.contains("measured (15 of 30)"));
    assert!(text.contains("max 3") && text.contains("min 0.1"));
}

#[test]
fn the_panel_is_one_sheet_with_all_four_figures() {
    let figures = [
        Figure::Temperature(temperature()),
        Figure::Entropy(entropy()),
        Figure::LoopGain(gain()),
        Figure::Clock(clock()),
    ];
    let drawn = panel(&figures).unwrap();
    for part in ["Temperature", "Entropy", "Loop gain", "Clock"] {
        assert!(drawn.svg.contains(part), "{part}");
    }
    let reader = png::Decoder::new(drawn.png.as_slice()).read_info().unwrap();
    assert_eq!((reader.info().width, reader.info().height), (2880, 1760));
}

#[test]
fn a_number_that_is_not_finite_is_named_with_its_place() {
    let mut figure = temperature();
    figure.measured[2][7] = f64::NAN;
    let text = svg(&Figure::Temperature(figure)).unwrap_err().to_string();
    assert!(
        text.contains("measured sequence 2, value 7 is NaN"),
        "{text}"
    );

    let mut figure = verdicts();
    figure.rows[0].error = Some((f64::INFINITY, 0.1));
    let text = svg(&Figure::Verdicts(figure)).unwrap_err().to_string();
    assert!(text.contains("mean u") && text.contains("inf"), "{text}");
}

#[test]
fn a_figure_without_numbers_is_an_error() {
    let empty: Vec<Figure> = vec![
        Figure::Temperature(Temperature::default()),
        Figure::Entropy(Entropy {
            measured: vec![vec![]],
            ..Entropy::default()
        }),
        Figure::LoopGain(LoopGain::default()),
        Figure::Clock(Clock::default()),
        Figure::Verdicts(Verdicts::default()),
        Figure::Distribution(Distribution {
            measured: vec![1.0],
            ..Distribution::default()
        }),
    ];
    for figure in empty {
        assert!(
            matches!(svg(&figure), Err(FigureError::Empty { .. })),
            "{figure:?}"
        );
    }
}

#[test]
fn values_that_their_axis_cannot_hold_are_errors() {
    let mut figure = temperature();
    figure.predicted[0][3] = 0.0;
    assert!(matches!(
        svg(&Figure::Temperature(figure)),
        Err(FigureError::NotPositive { index: 3, .. })
    ));
    let mut figure = entropy();
    figure.bounds.as_mut().unwrap().upper_nats.pop();
    assert!(matches!(
        svg(&Figure::Entropy(figure)),
        Err(FigureError::Length {
            seen: 39,
            expected: 40,
            ..
        })
    ));
    let mut figure = verdicts();
    figure.rows[1].tolerance = 0.0;
    assert!(matches!(
        svg(&Figure::Verdicts(figure)),
        Err(FigureError::NotPositive { .. })
    ));
}

#[test]
fn ranges_of_no_width_and_of_extreme_width_are_drawn() {
    for values in [
        vec![1.0],
        vec![1.0; 9],
        vec![1e-99, 1e99],
        vec![1e-100],
        vec![1e100; 2],
        vec![0.2, 0.2000001],
    ] {
        let many = vec![values.clone(), values.clone()];
        let figures = [
            Figure::Temperature(Temperature {
                measured: many.clone(),
                t_min: Some(1.0),
                ..Temperature::default()
            }),
            Figure::Entropy(Entropy {
                measured: many.clone(),
                ..Entropy::default()
            }),
            Figure::LoopGain(LoopGain {
                predicted: many.clone(),
                ..LoopGain::default()
            }),
            Figure::Clock(Clock {
                tau_nats: values.clone(),
                ..Clock::default()
            }),
            Figure::Distribution(Distribution {
                measured: values.clone(),
                predicted: values.iter().map(|v| -v).collect(),
                ..Distribution::default()
            }),
        ];
        for figure in figures {
            let text = svg(&figure).unwrap();
            assert!(text.len() < 100_000, "{} bytes", text.len());
        }
    }
}

#[test]
fn numbers_too_large_or_too_small_for_an_axis_are_errors() {
    for value in [1e101, -1e101, f64::MAX] {
        let figure = Figure::LoopGain(LoopGain {
            measured: vec![vec![value]],
            ..LoopGain::default()
        });
        assert!(matches!(svg(&figure), Err(FigureError::NotFinite { .. })));
    }
    let figure = Figure::Temperature(Temperature {
        measured: vec![vec![5e-324]],
        ..Temperature::default()
    });
    assert!(matches!(svg(&figure), Err(FigureError::NotPositive { .. })));
    let figure = Figure::Clock(Clock {
        tau_nats: vec![5e-324],
        ..Clock::default()
    });
    svg(&figure).unwrap();
}
