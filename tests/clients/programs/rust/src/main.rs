//! Looks names up with hickory-resolver and the system's resolv.conf, as tests/clients/programs/README.md describes.
use std::io::{self, BufRead, Write};
use std::time::Instant;

use hickory_resolver::config::LookupIpStrategy;
use hickory_resolver::TokioResolver;
use serde_json::{json, Value};

fn resolver(family: &str) -> TokioResolver {
    let mut builder = TokioResolver::builder_tokio().expect("resolv.conf");
    builder.options_mut().ip_strategy = match family {
        "4" => LookupIpStrategy::Ipv4Only,
        "6" => LookupIpStrategy::Ipv6Only,
        _ => LookupIpStrategy::Ipv4AndIpv6,
    };
    builder.build().expect("resolver")
}

async fn lookup(resolver: &TokioResolver, name: &str) -> Value {
    match resolver.lookup_ip(name).await {
        Ok(found) => {
            let addresses: Vec<String> = found.iter().map(|one| one.to_string()).collect();
            json!({"outcome": "found", "addresses": addresses})
        }
        Err(error) if error.is_nx_domain() => json!({"outcome": "no such name", "addresses": []}),
        Err(error) if error.is_no_records_found() => json!({"outcome": "no data", "addresses": []}),
        Err(error) => json!({"outcome": "error", "addresses": [], "detail": error.to_string()}),
    }
}

fn say(line: &Value) {
    println!("{line}");
    io::stdout().flush().expect("stdout");
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let resolvers = ["4", "6", "any"].map(|family| (family, resolver(family)));
    say(&json!({"version": "0.26.3"}));
    for line in io::stdin().lock().lines() {
        let line = line.expect("stdin");
        let (family, name) = line.split_once(' ').expect("FAMILY NAME");
        let (_, resolver) = resolvers.iter().find(|(one, _)| *one == family).expect("4, 6 or any");
        let start = Instant::now();
        let mut said = lookup(resolver, name).await;
        said["seconds"] = json!(start.elapsed().as_secs_f64());
        say(&said);
    }
}
