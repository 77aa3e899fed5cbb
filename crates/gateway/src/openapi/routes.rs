//! Routes with their descriptions: one call registers both.

use super::{
    RouteAbout,
    input::{RequestParts, RouteHandler},
};
use crate::{
    GatewayState,
    http::{body_limit, unsupported},
};
use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request, rejection::BytesRejection},
    http::Method,
    response::IntoResponse,
    routing::{MethodFilter, MethodRouter, Route, any, on},
};
use schemars::{Schema, SchemaGenerator};
use std::{convert::Infallible, sync::Arc};
use tower::{Layer, Service};

/// Callers admitted to a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteAccess {
    /// Every caller, including requests that prove themselves otherwise.
    Open,
    /// Identified callers.
    Known,
    /// Administrators.
    Admin,
}

/// The operation of a handler.
#[derive(Clone)]
pub(super) struct RouteOperation {
    pub(super) path: String,
    pub(super) method: Method,
    pub(super) about: Arc<RouteAbout>,
    pub(super) tag: &'static str,
    pub(super) access: RouteAccess,
    pub(super) inputs: fn(&mut SchemaGenerator, &mut RequestParts),
    pub(super) answer: fn(&mut SchemaGenerator) -> Option<(u16, Schema)>,
}

/// A path that is deliberately unsupported, and the reason.
#[derive(Clone)]
pub(super) struct MissingPart {
    pub(super) path: String,
    pub(super) why: &'static str,
}

/// Descriptions of all routes.
pub(crate) struct RouteList {
    pub(super) operations: Vec<RouteOperation>,
    pub(super) missing: Vec<MissingPart>,
}

/// Routes and their descriptions.
#[derive(Clone)]
pub(crate) struct Routes {
    router: Router<GatewayState>,
    tag: &'static str,
    operations: Vec<RouteOperation>,
    missing: Vec<MissingPart>,
}

/// The handlers of one path and their descriptions.
pub(crate) struct MethodRoutes {
    router: MethodRouter<GatewayState>,
    operations: Vec<RouteOperation>,
}

macro_rules! methods {
    ($($name:ident $method:ident),+) => {
        $(
            #[doc = concat!("Routes `", stringify!($method), "` to a handler.")]
            pub(crate) fn $name<H: RouteHandler<T>, T: 'static>(
                handler: H,
                about: impl Into<RouteAbout>,
            ) -> MethodRoutes {
                MethodRoutes { router: MethodRouter::new(), operations: Vec::new() }.$name(handler, about)
            }
        )+
        impl MethodRoutes {
            $(
                #[doc = concat!("Routes `", stringify!($method), "` to a handler as well.")]
                pub(crate) fn $name<H: RouteHandler<T>, T: 'static>(
                    self,
                    handler: H,
                    about: impl Into<RouteAbout>,
                ) -> Self {
                    self.on(MethodFilter::$method, Method::$method, handler, about)
                }
            )+
        }
    };
}

methods!(get GET, post POST, put PUT, patch PATCH, delete DELETE);

impl MethodRoutes {
    fn on<H: RouteHandler<T>, T: 'static>(
        mut self,
        filter: MethodFilter,
        method: Method,
        handler: H,
        about: impl Into<RouteAbout>,
    ) -> Self {
        self.operations.push(RouteOperation {
            path: String::new(),
            method,
            about: Arc::new(about.into()),
            tag: "",
            access: RouteAccess::Open,
            inputs: H::inputs,
            answer: H::answer,
        });
        Self { router: self.router.merge(on(filter, handler)), operations: self.operations }
    }

    /// Limits the size of bodies, in bytes.
    pub(crate) fn limit(self, bytes: usize) -> Self {
        Self { router: self.router.layer(body_limit::layers(bytes)), operations: self.operations }
    }

    /// Accepts bodies of any size: the handler limits them.
    pub(crate) fn without_limit(self) -> Self {
        Self { router: self.router.layer(DefaultBodyLimit::disable()), operations: self.operations }
    }
}

impl Routes {
    /// Begins a list of routes that the document shows under one heading.
    pub(crate) fn new(tag: &'static str) -> Self {
        Self { router: Router::new(), tag, operations: Vec::new(), missing: Vec::new() }
    }

    /// Adds a path with its handlers.
    pub(crate) fn at(mut self, path: &str, handlers: MethodRoutes) -> Self {
        let tag = self.tag;
        let here = |operation: RouteOperation| RouteOperation { path: path.to_owned(), tag, ..operation };
        self.operations.extend(handlers.operations.into_iter().map(here));
        self.router = self.router.route(path, handlers.router);
        self
    }

    /// Adds the path of an unsupported part, which answers 404 with the reason.
    pub(crate) fn missing(mut self, path: &str, part: unsupported::Part) -> Self {
        self.missing.push(MissingPart { path: path.to_owned(), why: part.message() });
        // Reads the body first, because a response sent before that would close the connection.
        let no = move |_: Result<Bytes, BytesRejection>| std::future::ready(unsupported::answer(part));
        let no = any(no);
        self.router = self.router.route(path, no);
        self
    }

    /// Adds other routes.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.operations.extend(other.operations);
        self.missing.extend(other.missing);
        self.router = self.router.merge(other.router);
        self
    }

    /// Adds other routes under a prefix.
    pub(crate) fn nest(mut self, prefix: &str, other: Self) -> Self {
        let below = |path: &str| format!("{prefix}{path}");
        let operations = other.operations.into_iter();
        self.operations
            .extend(operations.map(|operation| RouteOperation { path: below(&operation.path), ..operation }));
        let missing = other.missing.into_iter();
        self.missing.extend(missing.map(|part| MissingPart { path: below(&part.path), ..part }));
        self.router = self.router.nest(prefix, other.router);
        self
    }

    /// Wraps the routes in a layer.
    pub(crate) fn behind<L>(mut self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request, Error: Into<Infallible>, Response: IntoResponse + 'static>
            + Clone
            + Send
            + Sync
            + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        self.router = self.router.route_layer(layer);
        self
    }

    /// Wraps the routes in `layer`, which enforces `access`, and records that access for all routes that were open.
    pub(crate) fn admitted<L>(mut self, access: RouteAccess, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request, Error: Into<Infallible>, Response: IntoResponse + 'static>
            + Clone
            + Send
            + Sync
            + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        for operation in self.operations.iter_mut().filter(|operation| operation.access == RouteAccess::Open)
        {
            operation.access = access;
        }
        self.behind(layer)
    }

    /// Returns the router, and the operations for its document.
    pub(crate) fn finish(self) -> (Router<GatewayState>, RouteList) {
        (self.router, RouteList { operations: self.operations, missing: self.missing })
    }
}
