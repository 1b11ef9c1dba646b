//! Waiting for a device that runs work later.

use octants_hal::Cancel;
use octants_runtime::Context;

use crate::error::Error;

/// Whether work is over when whoever told of it goes on.
pub(crate) fn runs_at_once(context: &Context) -> bool {
    context.device().is_immediate(context.default_stream())
}

/// Waits until the default stream is past everything. Raising `cancel` ends the wait, not the work.
pub(crate) fn wait(context: &Context, cancel: &Cancel) -> Result<(), Error> {
    match context.wait(context.default_stream(), cancel, &mut || {}) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Cancelled),
        Err(error) => Err(Error::after_launches(error, context)),
    }
}
