//! Reports an estimate on stdout, because the estimate is the result of the command. The format is
//! a table or JSON.

#[cfg(test)]
pub(crate) mod example;
mod human;

use memcheck_core::cards::Card;
use memcheck_core::wire::estimate::Estimate;
use serde::Serialize;

pub(crate) use self::human::human;
use crate::execution::estimator::DeviceFit;
use crate::presentation::presenters::json;

const VERSION: u32 = 1;

/// One estimate, and where it fits.
#[derive(Debug)]
pub(crate) struct EstimateFigures {
    pub(crate) estimate: Estimate,
    /// The free bytes of each card; `None` if the model does not fit.
    pub(crate) cards: Vec<(&'static Card, Option<u64>)>,
    pub(crate) tried: Vec<DeviceFit>,
    pub(crate) flash_attn: bool,
}

#[derive(Serialize)]
struct EstimateLine<'a> {
    r#type: &'static str,
    version: u32,
    #[serde(flatten)]
    estimate: &'a Estimate,
    flash_attn: bool,
    cards: Vec<CardLine>,
}

#[derive(Serialize)]
struct CardLine {
    card: &'static str,
    bytes: u64,
    fits: bool,
    /// Bytes. `None` if the model does not fit.
    headroom: Option<u64>,
}

#[derive(Serialize)]
struct DeviceLine<'a> {
    r#type: &'static str,
    device: &'a str,
    flash_attn: bool,
    fits: bool,
    peak: Option<u64>,
    message: Option<&'a str>,
}

pub(crate) fn json(figures: &EstimateFigures) {
    let &EstimateFigures { ref estimate, ref cards, ref tried, flash_attn } = figures;
    let card = |&(card, headroom): &(&'static Card, Option<u64>)| CardLine {
        card: card.id,
        bytes: card.bytes,
        fits: headroom.is_some(),
        headroom,
    };
    let cards = cards.iter().map(card).collect();
    let (r#type, version) = ("estimate", VERSION);
    json::print(&EstimateLine { r#type, version, estimate, flash_attn, cards });
    for DeviceFit { device, result } in tried {
        json::print(&DeviceLine {
            r#type: "estimate-device",
            device,
            flash_attn,
            fits: result.is_ok(),
            peak: result.as_ref().ok().copied(),
            message: result.as_ref().err().map(String::as_str),
        });
    }
}
