//! One line for each check, `ok NAME` or `FAIL NAME why`.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Generous: only a hang reaches it.
pub const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct Report {
    pub failed: usize,
}

impl Report {
    pub async fn check(&mut self, name: &str, body: impl Future<Output = Outcome>) {
        let outcome = tokio::time::timeout(PATIENCE, body).await;
        match outcome.unwrap_or_else(|_| Err(format!("nothing after {PATIENCE:?}").into())) {
            Ok(()) => println!("ok {name}"),
            Err(why) => {
                self.failed += 1;
                println!("FAIL {name} {}", why.to_string().replace('\n', " "));
            }
        }
    }
}

pub fn same<T: PartialEq + Debug>(got: T, expected: T) -> Outcome {
    if got == expected {
        return Ok(());
    }
    Err(format!("expected {expected:?}, got {got:?}").into())
}

/// It must have failed, with a message that contains this.
pub fn refused<T: Debug>(result: Result<T, impl ToString>, text: &str) -> Outcome {
    let answer = match result {
        Ok(value) => format!("accepted: {value:?}"),
        Err(error) => error.to_string(),
    };
    if answer.contains(text) {
        return Ok(());
    }
    Err(format!("expected {text}, got {answer}").into())
}
