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
        formula: "ηV".to_string(),
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
            row("slope", Some((1e-9, 0.0)), Mark::Pass),
            row("share", Some((0.0, 0.003)), Mark::Pass),
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
        "+0.0100 ± 0.0040 (0.05) nats",
        "90 % interval",
        "nothing to compare (0.05) nats",
        "\n0 (0.05) nats",
        "\n0 ± 0.0030 (0.05) nats",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn of_many_sequences_medians_and_bands_are_drawn_and_the_legend_says_so() {
    let text = svg(&Figure::Temperature(temperature())).unwrap();
    for part in ["measured: median, 5–95 %", "predicted: median, 5–95 %"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.contains("2 of 30 and 2 of 5 sequences"));
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
fn a_sheet_of_two_or_three_figures_has_no_hole() {
    let figures = [
        Figure::Temperature(temperature()),
        Figure::Entropy(entropy()),
        Figure::Clock(clock()),
    ];
    for (count, height) in [(2, 440), (3, 880)] {
        let text = panel(&figures[..count]).unwrap().svg;
        let head = format!("<svg width=\"1440\" height=\"{height}\"");
        assert!(text.starts_with(&head), "{count}");
    }
    // The last of three reaches from edge to edge.
    let text = panel(&figures).unwrap().svg;
    let farthest = texts(&text).into_iter().filter(|t| t.top > 4400.0);
    let farthest = farthest.map(|t| t.right).fold(0.0, f64::max);
    assert!(farthest > 13_000.0, "{farthest}");
}

/// A piece of text on a drawing and the box around its letters.
struct Text {
    words: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Every text of an SVG, measured in the font of the figures.
fn texts(svg: &str) -> Vec<Text> {
    use ab_glyph::{Font, FontRef};
    let font = FontRef::try_from_slice(epaint_default_fonts::UBUNTU_LIGHT).unwrap();
    let units = f64::from(font.units_per_em().unwrap());
    let width = |words: &str| -> f64 {
        let advance = |c| f64::from(font.h_advance_unscaled(font.glyph_id(c))) / units;
        words.chars().map(advance).sum()
    };
    let pieces = svg.split("<text ").skip(1);
    let piece = |piece: &str| {
        let (head, rest) = piece.split_once(">\n").unwrap();
        let words = rest.split("\n</text>").next().unwrap().to_string();
        let value = |name: &str| {
            let (_, rest) = head.split_once(&format!("{name}=\"")).unwrap();
            rest.split('"').next().unwrap()
        };
        let number = |name: &str| value(name).parse::<f64>().unwrap();
        let plain = words
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        let (em, x) = (number(" font-size"), head.trim_start_matches("x=\""));
        let x: f64 = x.split('"').next().unwrap().parse().unwrap();
        let size = em * width(&plain);
        let left = match value("text-anchor") {
            "start" => x,
            "middle" => x - size / 2.0,
            _ => x - size,
        };
        let base = number(" y") + 0.76 * em;
        Text {
            words,
            left,
            right: left + size,
            top: base - 0.7 * em,
            bottom: base,
        }
    };
    pieces.map(piece).collect()
}

fn assert_texts_stand_clear(svg: &str, width: f64) {
    let texts = texts(svg);
    assert!(texts.len() > 5);
    for (i, a) in texts.iter().enumerate() {
        assert!(
            a.left >= 0.0 && a.right <= width,
            "`{}` leaves the sheet",
            a.words
        );
        for b in &texts[i + 1..] {
            let apart =
                a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
            assert!(apart, "`{}` covers `{}`", a.words, b.words);
        }
    }
}

#[test]
fn no_text_covers_another_in_any_figure_alone_or_on_a_sheet() {
    let long = ", Normalised law, predicted with the wrong sign, forced level";
    let mut figures = all();
    for figure in &mut figures {
        match figure {
            Figure::Temperature(f) => f.title += long,
            Figure::Entropy(f) => f.title += long,
            Figure::LoopGain(f) => {
                f.title += long;
                f.formula = "κV/max(V, V_floor)".to_string();
            }
            Figure::Clock(f) => {
                f.title += long;
                f.tau_raw_nats = f.tau_nats.clone();
                f.surrogate_nats = f.tau_nats.clone();
                f.predicted_nats = f.tau_nats.clone();
            }
            Figure::Verdicts(f) => f.title += long,
            Figure::Distribution(f) => {
                f.title += long;
                f.measured = wave(24_576, 1.0, 0.0);
            }
        }
    }
    for figure in &figures {
        assert_texts_stand_clear(&svg(figure).unwrap(), 10_000.0);
    }
    for count in 1..=figures.len() {
        let sheet = panel(&figures[..count]).unwrap().svg;
        assert_texts_stand_clear(&sheet, 14_400.0);
    }
}

#[test]
fn an_upper_limit_that_is_far_away_is_named_and_not_drawn() {
    let drawn = |level: f64| {
        svg(&Figure::LoopGain(LoopGain {
            measured: waves(3, 40, level),
            ..gain()
        }))
        .unwrap()
    };
    let (low, high) = (drawn(0.1), drawn(0.9));
    assert!(low.contains("limit 2 is above") && !low.contains("unstable &gt; 2"));
    assert!(high.contains("unstable &gt; 2") && !high.contains("limit 2 is above"));
    assert!(low.contains("loop gain ηV"));
}

#[test]
fn entropy_that_stays_at_its_setpoint_gets_an_axis_around_it() {
    let figure = |h: f64| {
        svg(&Figure::Entropy(Entropy {
            title: "Entropy".to_string(),
            measured: vec![vec![h, 2.0, 2.0 + 1e-9]],
            target_nats: Some(2.0),
            ..Entropy::default()
        }))
        .unwrap()
    };
    assert!(figure(2.0).contains("\n1.90\n") && !figure(2.0).contains("\n0.0\n"));
    assert!(figure(0.3).contains("\n0.0\n"));
}

#[test]
fn a_clock_of_a_prediction_alone_has_the_colour_of_predictions() {
    let text = svg(&Figure::Clock(Clock {
        predicted_nats: wave(40, 1.0, 0.0),
        ..Clock::default()
    }))
    .unwrap();
    assert!(text.contains("#D55E00") && !text.contains("#0072B2"));
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

#[test]
fn a_negative_control_says_so_in_every_title_and_verdicts_stay_off_the_sheet() {
    use etime_control::config::{Control, Limits, Pruning};
    use etime_control::driver::Clock;
    use etime_control::law::{Fault, Normalised, TemperatureLaw};
    use etime_control::serve::Request;
    use etime_hil::experiment::{Experiment, run};
    use etime_hil::pictures;
    use etime_hil::scenario::Level;
    use etime_hil::workload::RunRequests;
    use etime_sim::{Logits, Process, Synthetic, SyntheticSpec};

    let run_of = |ids: std::ops::Range<u64>| RunRequests {
        requests: ids
            .clone()
            .map(|id| Request {
                id,
                prompt: vec![1, 2],
                new_tok: 24,
                ..Request::default()
            })
            .collect(),
        prompts: ids.collect(),
    };
    let law = Normalised {
        kappa: 0.5,
        target_nats: 2.0,
        v_floor: 0.2,
        max_step: None,
        t_min: 0.2,
        t_max: 2.0,
        t_start: 1.0,
        ema: 0.0,
        delay_tok: 0,
    };
    let mut experiment = Experiment {
        control: Control {
            temperature: TemperatureLaw::Normalised(law),
            pruning: Pruning::Dense,
            priority: Default::default(),
            sensor: Default::default(),
            h_min_nats: 0.0,
        },
        limits: Limits::roomy(4, 32),
        clock: Clock::Steps,
        seed: 5,
        levels: vec![Level::Free],
        tolerance: Default::default(),
        fault: None,
        judged: vec![run_of(0..3), run_of(3..6)],
        recorded: run_of(10..14),
        temperatures: vec![0.5, 1.0],
    };
    let spec = SyntheticSpec {
        logits: Logits::Zipf {
            vocab: 64,
            exponent: 1.2,
        },
        process: Process::Iid { sd: 0.3 },
        feedback_per_nat: 0.0,
    };
    for (fault, words) in [
        (None, ""),
        (Some(Fault::WrongSign), ", predicted with the wrong sign"),
        (Some(Fault::ExtraDelay), ", predicted one token late"),
    ] {
        experiment.fault = fault;
        let mut plant = Synthetic::new(&spec, 3).unwrap();
        let outcome = run(&mut plant, &experiment, &mut |_| {}).unwrap();
        let drawn = pictures::draw(&pictures::of(&experiment, &outcome)).unwrap();
        let title = format!(", Normalised law{words}, free level");
        assert_eq!(drawn.len(), 7);
        for (name, drawn) in &drawn {
            let titles = drawn.svg.matches(&title).count();
            assert_eq!(titles, if *name == "panel" { 4 } else { 1 }, "{name}");
            assert!(!drawn.svg.contains("ηV"), "{name}");
        }
        let of = |wanted: &str| &drawn.iter().find(|(name, _)| *name == wanted).unwrap().1;
        assert!(of("loop_gain").svg.contains("loop gain κV/max(V, V_floor)"));
        assert!(!of("panel").svg.contains("within tolerance"));
    }
}
