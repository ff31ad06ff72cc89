//! Real output of exporters of Debian 12 (without help), and what they have nothing of.

use std::collections::BTreeMap;

use super::{MOST_SAMPLES, matches, parse};

const NODE_EXPORTER: &str = include_str!("node-exporter.txt");
const REDIS_EXPORTER: &str = include_str!("redis-exporter.txt");
const NGINX_EXPORTER: &str = include_str!("nginx-exporter.txt");
const OTHERS: &str = r#"# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post", code="200"} 1027 1395066363000
http_requests_total{code="400",method="post",} 3
# TYPE request_seconds histogram
request_seconds_bucket{le="0.1"} 24054 # {trace_id="a{b"} 0.054 1520879607.789
request_seconds_bucket{le="+Inf"} 144320
request_seconds_sum 53423
request_seconds_count 144320
request_seconds_created 1.5e9
# TYPE foo counter
foo_total 17.0 1520879607.789
foo_created 1520430000.123
# TYPE rpc summary
rpc{quantile="0.5"} NaN
rpc_sum 1.7560473e+07
rpc_count 2693
# TYPE size gaugehistogram
size_gcount 4
msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="Cannot find file:\n\"FILE.TXT\""} 1.458255915e9
# EOF
"#;

fn parsed(text: &str) -> BTreeMap<String, (bool, f64)> {
    let values = parse(text, |_| true).expect("it is of the format");
    let pairs = values
        .into_iter()
        .map(|each| (each.series, (each.counter, each.value)));
    pairs.collect()
}

#[test]
fn every_sample_of_a_real_exporter_is_read_with_its_declared_type() {
    for text in [NODE_EXPORTER, REDIS_EXPORTER, NGINX_EXPORTER] {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(parsed(text).len(), lines.count());
    }
    assert!(parsed(REDIS_EXPORTER)["redis_commands_processed_total"].0);
    assert!(!parsed(REDIS_EXPORTER)["redis_memory_used_bytes"].0);
    let nginx = parsed(NGINX_EXPORTER);
    assert_eq!(nginx["nginx_http_requests_total"], (true, 2.0));
    assert_eq!(nginx["nginx_connections_active"], (false, 1.0));
    let values = parsed(NODE_EXPORTER);
    assert!(values[r#"node_cpu_seconds_total{cpu="0",mode="idle"}"#].0);
    assert!(!values["node_load1"].0);
    assert!(values["go_gc_duration_seconds_count"].0, "of a summary");
    assert!(!values[r#"go_gc_duration_seconds{quantile="0.5"}"#].0);
    assert!(!values["node_vmstat_pgfault"].0, "it is declared untyped");
    for (series, (counter, value)) in values {
        assert!(!counter || value >= 0.0, "{series} is a counter: {value}");
    }
}

#[test]
fn labels_have_an_order_and_suffixes_the_type_of_their_family() {
    let values = parsed(OTHERS);
    let counters: Vec<&str> = values
        .iter()
        .filter(|(_, (counter, _))| *counter)
        .map(|(series, _)| series.as_str())
        .collect();
    assert_eq!(
        counters,
        [
            "foo_total",
            r#"http_requests_total{code="200",method="post"}"#,
            r#"http_requests_total{code="400",method="post"}"#,
            r#"request_seconds_bucket{le="+Inf"}"#,
            r#"request_seconds_bucket{le="0.1"}"#,
            "request_seconds_count",
            "request_seconds_sum",
            "rpc_count",
            "rpc_sum",
        ]
    );
    assert!(values[r#"rpc{quantile="0.5"}"#].1.is_nan());
    let quoted = r#"msdos_file_access_time_seconds{error="Cannot find file:\n\"FILE.TXT\"",path="C:\\DIR\\FILE.TXT"}"#;
    assert!(values.contains_key(quoted), "{:?}", values.keys());
}

#[test]
fn the_first_line_that_is_not_of_the_format_is_named() {
    for line in [
        "<html>",
        "a",
        "a b",
        "a{b=c} 1",
        "a{b=\"c} 1",
        "a{b=\"c\" d=\"e\"} 1",
        "1a 1",
        "a{b=\"c\"}",
        "a{} ",
    ] {
        let error = parse(&format!("# HELP x\nx 1\n{line}\n"), |_| true);
        assert_eq!(error, Err("line 3 is not a sample".to_owned()), "{line}");
    }
    assert_eq!(parse("", |_| true), Ok(vec![]));
}

#[test]
fn a_number_that_is_cut_is_not_a_smaller_one() {
    let cut = parse("a_total 7\nb_total 12", |_| true);
    assert!(cut.is_err_and(|reason| reason.contains("the answer was cut")));
    let whole = parse("a_total 7\nb_total 123\n# EOF", |_| true);
    assert_eq!(whole.map(|values| values.len()), Ok(2));
}

#[test]
fn patterns_name_metrics_whole_or_by_part() {
    let patterns = ["up", "http_*_total", "*_bytes"].map(str::to_owned);
    for name in ["up", "http_requests_total", "http__total", "node_bytes"] {
        assert!(matches(&patterns, name), "{name}");
    }
    for name in ["upper", "http_total", "node_bytes_total", ""] {
        assert!(!matches(&patterns, name), "{name}");
    }
    assert!(matches(&[], "anything"));
    let many = |name: &str| matches(&[format!("{}b", "*a".repeat(12))], name);
    assert!(many(&format!("{}b", "a".repeat(500))));
    assert!(
        !many(&"a".repeat(500)),
        "and says so before the sun burns out"
    );
    let kept = parse(NODE_EXPORTER, |name| {
        matches(&["node_cpu_*".to_owned()], name)
    });
    let kept = kept.expect("it is of the format");
    assert!(!kept.is_empty() && kept.iter().all(|each| each.series.starts_with("node_cpu_")));
}

#[test]
fn an_answer_without_end_is_refused_before_all_of_it_is_kept() {
    let samples = "x 1\n".repeat(MOST_SAMPLES);
    assert_eq!(
        parse(&samples, |_| true).map(|all| all.len()),
        Ok(MOST_SAMPLES)
    );
    let more = parse(&format!("{samples}x 1\n"), |_| true);
    assert!(more.is_err_and(|reason| reason.contains("more than 10000 different series")));
}
