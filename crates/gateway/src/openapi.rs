//! The OpenAPI document of the gateway, generated from its routes.
//!
//! `Routes::at` is the only way to register a route, and takes the handler together with its description. So the
//! document cannot lack a route, and its parameters and bodies are those that the handler's extractors read.

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
