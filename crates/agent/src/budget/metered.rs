//! A model whose calls are metered: each is reserved beforehand and settled afterwards.

use super::meter::{Meter, OpenCall};
use futures_util::{StreamExt, stream};
use pudu_base::{Delta, Model, ModelError, ModelStream, Request};
use std::sync::Arc;

/// Wraps a model, with its retries and fallbacks, for the calls of one run.
struct MeteredModel {
    model: Arc<dyn Model>,
    meter: Meter,
}

/// Returns a model whose calls are counted by a meter.
pub(crate) fn metered(model: Arc<dyn Model>, meter: &Meter) -> Arc<dyn Model> {
    Arc::new(MeteredModel { model, meter: meter.clone() })
}

impl Model for MeteredModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn context_window(&self) -> u64 {
        self.model.context_window()
    }

    fn max_output(&self) -> Option<u64> {
        self.model.max_output()
    }

    fn answerers(&self) -> Vec<String> {
        self.model.answerers()
    }

    fn supports_vision(&self) -> bool {
        self.model.supports_vision()
    }

    fn only_echoes(&self) -> bool {
        self.model.only_echoes()
    }

    fn standby(&self) -> Option<String> {
        self.model.standby()
    }

    fn stream(&self, request: Request) -> ModelStream {
        let begin = Metering::Waiting {
            model: self.model.clone(),
            meter: self.meter.clone(),
            request: Box::new(request),
        };
        stream::unfold(begin, |metering| async move { metering.next().await }).boxed()
    }
}

/// State of one call.
enum Metering {
    /// It waits for its reservation.
    Waiting { model: Arc<dyn Model>, meter: Meter, request: Box<Request> },
    /// Its reply is being received. The call is settled on drop at the latest.
    Reading { reply: ModelStream, call: Box<OpenCall> },
    /// It has ended.
    Over,
}

type MeteredNext = Option<(Result<Delta, ModelError>, Metering)>;

impl Metering {
    async fn next(self) -> MeteredNext {
        match self {
            Self::Over => None,
            Self::Reading { reply, call } => read(reply, call).await,
            Self::Waiting { model, meter, request } => {
                let call = match meter.open(&model, &request).await {
                    Ok(call) => Box::new(call),
                    Err(error) => return Some((Err(error), Self::Over)),
                };
                let reply = call.model.stream(call.fit(*request));
                if call.is_cheaper {
                    let name = Delta::Model(call.model.name().to_owned());
                    return Some((Ok(name), Self::Reading { reply, call }));
                }
                read(reply, call).await
            }
        }
    }
}

async fn read(mut reply: ModelStream, mut call: Box<OpenCall>) -> MeteredNext {
    match reply.next().await? {
        Ok(delta) => match call.on_delta(&delta).await {
            Ok(()) => Some((Ok(delta), Metering::Reading { reply, call })),
            Err(refused) => Some((Err(refused), Metering::Over)),
        },
        Err(error) => {
            call.fail(&error);
            Some((Err(error), Metering::Over))
        }
    }
}
