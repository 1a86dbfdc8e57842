//! `cargo memcheck schema`: prints the JSON schema of the stream of results.

use memcheck_core::wire::exit;

use crate::presentation::schema::STREAM;
use crate::system::error::Failure;
use crate::system::printing::print_raw;

pub(super) fn schema() -> Result<u8, Failure> {
    print_raw(STREAM);
    Ok(exit::OK)
}
