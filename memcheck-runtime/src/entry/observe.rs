//! Figures of other counters that are added to the record: the driver's pool, NVML and CUPTI.

use memcheck_core::measurement::record::Record;
use memcheck_core::space::Space;

use crate::device::Device;
#[cfg(feature = "cuda")]
use crate::probe::{cupti, nvml, pool};

/// The CUPTI listener of a run that needs one. Empty in a build without CUDA.
#[derive(Debug)]
pub(super) struct OtherCounters {
    #[cfg(feature = "cuda")]
    listener: Option<Result<cupti::Listener, cupti::CuptiUnavailable>>,
}

impl OtherCounters {
    /// Starts to listen if `wanted`. Must be called before the device is opened.
    pub(super) fn start(wanted: bool) -> Self {
        #[cfg(not(feature = "cuda"))]
        let _ = wanted;
        Self {
            #[cfg(feature = "cuda")]
            listener: wanted.then(cupti::start),
        }
    }

    /// Adds the figures of the test's own device to the record.
    #[cfg(feature = "cuda")]
    pub(super) fn observe(self, device: &Device, own: Space, record: &mut Record) {
        use memcheck_core::judgement::verdict::gist;
        use memcheck_core::measurement::driver::Untracked;
        if !own.is_device() {
            return;
        }
        record.driver.simulated = crate::driver::is_simulated();
        record.driver.gpu = gpu(device, own);
        record.driver.workspaces = workspaces();
        let Some(measured) = record.spaces.get_mut(&own) else { return };
        match pool::read(device) {
            Ok(Some(pool)) => {
                measured.metrics.reserved = Some(pool.reserved);
                measured.metrics.peak_reserved = Some(pool.peak_reserved);
            }
            Ok(None) => record.notes.push("the device has no memory pool".to_owned()),
            Err(error) => {
                let error = error.to_string();
                record.notes.push(format!("the memory pool cannot be read: {}", gist(&error)));
            }
        }
        match nvml::device_used(own) {
            Ok(bytes) => measured.metrics.device_used = Some(bytes),
            Err(error) => record.notes.push(format!("NVML is not available: {error}")),
        }
        if let Some(listener) = self.listener {
            let seen = listener.and_then(|listener| listener.finish(own));
            let seen = seen.as_deref().map_err(ToString::to_string);
            let reserved = measured.metrics.reserved.unwrap_or(0);
            let untracked = Untracked::of(own, measured.metrics.device_used, reserved, seen);
            record.driver.untracked = Some(untracked);
        }
        let refused = record.spaces.iter().filter(|(_, measured)| measured.refused.is_some());
        // Other processes matter only if a device had no room.
        let others = refused.filter_map(|(space, _)| nvml::others(*space).ok());
        record.driver.others = others.flatten().collect();
    }

    #[cfg(not(feature = "cuda"))]
    pub(super) fn observe(self, _device: &Device, _own: Space, _record: &mut Record) {}
}

/// The name and UUID of the GPU. A simulated GPU has none.
#[cfg(all(feature = "cuda", not(feature = "sim")))]
fn gpu(device: &Device, own: Space) -> Option<memcheck_core::measurement::driver::Gpu> {
    let name = crate::probe::card::card(device).ok().flatten()?.name;
    Some(memcheck_core::measurement::driver::Gpu { name, uuid: nvml::name_of(own).ok() })
}

/// The workspaces whose sizes the simulated libraries have estimated.
#[cfg(feature = "sim")]
fn workspaces() -> Vec<memcheck_core::measurement::driver::Workspaces> {
    let all = memcheck_sim::workspaces().into_iter();
    all.map(|memcheck_sim::Workspaces { library, count, largest, .. }| {
        memcheck_core::measurement::driver::Workspaces { library: library.into(), count, largest }
    })
    .collect()
}

#[cfg(all(feature = "cuda", not(feature = "sim")))]
fn workspaces() -> Vec<memcheck_core::measurement::driver::Workspaces> {
    Vec::new()
}

#[cfg(feature = "sim")]
fn gpu(_device: &Device, _own: Space) -> Option<memcheck_core::measurement::driver::Gpu> {
    None
}

/// Other processes that hold memory of a device, as a part of a sentence.
pub(super) fn other_processes(space: Space) -> String {
    #[cfg(feature = "cuda")]
    if let Ok(others) = nvml::others(space) {
        return others.iter().map(|other| format!("; {}", other.shown())).collect();
    }
    let _ = space;
    String::new()
}
