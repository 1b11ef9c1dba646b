//! Why code that was made for arguments does not fit them: something behind them is another thing each time that it is read.

use pyo3::prelude::*;

use super::array::ArrayFit;
use super::input::Check;
use super::instance_dict::InstanceDict;
use super::specialisation::{Specialisation, known};
use super::writer::LaunchArguments;

/// What of the arguments, or behind them, the code is not for.
pub enum Misfit<'py> {
    /// An argument, or a member that one leads to: the number of the argument, the way from there as the user writes it, and what is there now.
    Input { argument: Option<usize>, steps: String, now: Option<Bound<'py, PyAny>> },
    /// It fits by now.
    Passed,
}

impl Specialisation {
    /// The first thing that the code is not for. Reads everything once more.
    #[cold]
    pub fn misfit<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
    ) -> PyResult<Misfit<'py>> {
        let mut launch = LaunchArguments::new(false);
        let (mut writer, read, _) = launch.writer(&self.compiled);
        let mut stored = InstanceDict::default();
        for (index, input) in self.inputs().iter().enumerate() {
            if index >= arguments.len() {
                let Some(object) = input.read(py, |at| known(py, arguments, read, at), &mut stored)? else {
                    return Ok(self.misfitting(py, index, None));
                };
                read.push(Some(object));
            }
            let read = &*read;
            let object = known(py, arguments, read, index);
            let fits = match &input.check {
                Check::Array(array) => matches!(array.write(&object, &mut writer)?, ArrayFit::Fits),
                check => check.write(&object, |at| known(py, arguments, read, at), &mut writer)?,
            };
            if !fits {
                return Ok(self.misfitting(py, index, Some(object.to_owned())));
            }
        }
        Ok(Misfit::Passed)
    }

    fn misfitting<'py>(&self, py: Python<'py>, index: usize, now: Option<Bound<'py, PyAny>>) -> Misfit<'py> {
        let (mut steps, mut at) = (String::new(), index);
        while let Some((of, step)) = self.inputs()[at].last_step(py) {
            steps.insert_str(0, &step);
            at = of;
        }
        let argument = self.inputs()[at].is_argument().then_some(at);
        Misfit::Input { argument, steps, now }
    }
}
