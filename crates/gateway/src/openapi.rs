//! The OpenAPI document of the gateway, made of its routes.
//!
//! A route is registered by `Routes::at`, which takes the handler and its description in one call, and nothing else
//! registers any. So the document cannot lack a route, and parameters and bodies are those that the handler's own
//! extractors read.

mod about;
mod answer;
mod document;
mod input;
mod page;
mod parameters;
mod routes;
mod shapes;

pub(super) use about::{RouteAbout, about};
pub(super) use document::{OpenApiDocument, document};
pub(super) use input::{Described, NamesInPath, RequestParts};
pub(super) use page::page;
pub(super) use routes::{MethodRoutes, RouteAccess, Routes, delete, get, patch, post, put};
