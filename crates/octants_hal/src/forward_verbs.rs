//! Devices that stand before another one: verbs that they only hand on. What they do themselves is theirs to say.

/// Hands verbs of [`Device`](crate::Device) on to the device `self.inner`, in an `impl` of it. Whoever stands before a device names every verb,
/// here or with a body: one with a default would be answered by that.
#[macro_export]
macro_rules! forward_verbs {
    ($($verb:ident),+ $(,)?) => { $($crate::forward_verbs!(@ $verb);)+ };
    (@ name) => {
        fn name(&self) -> &str {
            self.inner.name()
        }
    };
    (@ capabilities) => {
        fn capabilities(&self) -> $crate::Capabilities {
            self.inner.capabilities()
        }
    };
    (@ properties) => {
        fn properties(&self) -> Result<$crate::DeviceProperties, $crate::DeviceError> {
            self.inner.properties()
        }
    };
    (@ clock_rate) => {
        fn clock_rate(&self) -> Option<u64> {
            self.inner.clock_rate()
        }
    };
    (@ default_stream) => {
        fn default_stream(&self) -> $crate::Stream {
            self.inner.default_stream()
        }
    };
    (@ is_immediate) => {
        fn is_immediate(&self, stream: $crate::Stream) -> bool {
            self.inner.is_immediate(stream)
        }
    };
    (@ is_usable_in_child) => {
        fn is_usable_in_child(&self) -> bool {
            self.inner.is_usable_in_child()
        }
    };
    (@ is_at_rest) => {
        fn is_at_rest(&self) -> bool {
            self.inner.is_at_rest()
        }
    };
    (@ copies) => {
        fn copies(&self) -> usize {
            self.inner.copies()
        }
    };
    (@ begin_exclusive) => {
        fn begin_exclusive(&self, stream: $crate::Stream) -> bool {
            self.inner.begin_exclusive(stream)
        }
    };
    (@ end_exclusive) => {
        fn end_exclusive(&self) {
            self.inner.end_exclusive();
        }
    };
    (@ waits_for_exclusive) => {
        fn waits_for_exclusive(&self) -> bool {
            self.inner.waits_for_exclusive()
        }
    };
    (@ host_threads) => {
        fn host_threads(&self) -> usize {
            self.inner.host_threads()
        }
    };
    (@ run_on_host) => {
        fn run_on_host(&self, parts: u64, work: &(dyn Fn(u64, u64) + Sync)) {
            self.inner.run_on_host(parts, work);
        }
    };
    (@ fork_costs) => {
        fn fork_costs(&self) -> $crate::ForkCosts {
            self.inner.fork_costs()
        }
    };
    (@ allocate) => {
        unsafe fn allocate(&self, stream: $crate::Stream, bytes: usize) -> Result<$crate::Address, $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.allocate(stream, bytes) }
        }
    };
    (@ reserve) => {
        unsafe fn reserve(&self, stream: $crate::Stream, bytes: usize) -> Result<$crate::Address, $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.reserve(stream, bytes) }
        }
    };
    (@ commit) => {
        unsafe fn commit(&self, reserved: $crate::Address, bytes: usize) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.commit(reserved, bytes) }
        }
    };
    (@ reservable) => {
        fn reservable(&self) -> u64 {
            self.inner.reservable()
        }
    };
    (@ reserve_range) => {
        fn reserve_range(&self, bytes: usize) -> Result<$crate::Address, $crate::DeviceError> {
            self.inner.reserve_range(bytes)
        }
    };
    (@ back) => {
        unsafe fn back(&self, range: $crate::Address, offset: usize, bytes: usize) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.back(range, offset, bytes) }
        }
    };
    (@ write_beside) => {
        unsafe fn write_beside(&self, to: $crate::Address, from: &[u8]) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.write_beside(to, from) }
        }
    };
    (@ read_beside) => {
        unsafe fn read_beside(&self, from: $crate::Address, to: &mut [u8]) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.read_beside(from, to) }
        }
    };
    (@ free) => {
        unsafe fn free(&self, stream: $crate::Stream, address: $crate::Address, bytes: usize) {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.free(stream, address, bytes) }
        }
    };
    (@ allocate_scratch) => {
        unsafe fn allocate_scratch(&self, stream: $crate::Stream, bytes: usize) -> Result<$crate::Address, $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.allocate_scratch(stream, bytes) }
        }
    };
    (@ free_scratch) => {
        unsafe fn free_scratch(&self, stream: $crate::Stream, address: $crate::Address, bytes: usize) {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.free_scratch(stream, address, bytes) }
        }
    };
    (@ allocate_shared) => {
        fn allocate_shared(&self, bytes: usize) -> Result<$crate::SharedMemory, $crate::DeviceError> {
            self.inner.allocate_shared(bytes)
        }
    };
    (@ free_shared) => {
        unsafe fn free_shared(&self, memory: $crate::SharedMemory) {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.free_shared(memory) }
        }
    };
    (@ copy_to_device) => {
        unsafe fn copy_to_device(&self, stream: $crate::Stream, to: $crate::Address, from: *const u8, bytes: usize) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.copy_to_device(stream, to, from, bytes) }
        }
    };
    (@ copy_to_host) => {
        unsafe fn copy_to_host(&self, stream: $crate::Stream, to: *mut u8, from: $crate::Address, bytes: usize) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.copy_to_host(stream, to, from, bytes) }
        }
    };
    (@ copy) => {
        unsafe fn copy(&self, stream: $crate::Stream, to: $crate::Address, from: $crate::Address, bytes: usize) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.copy(stream, to, from, bytes) }
        }
    };
    (@ scatter) => {
        unsafe fn scatter(&self, stream: $crate::Stream, to: $crate::Address, from: $crate::Address, rows: &$crate::Rows) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.scatter(stream, to, from, rows) }
        }
    };
    (@ fill) => {
        unsafe fn fill(&self, stream: $crate::Stream, to: $crate::Address, pattern: &[u8], bytes: usize) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.fill(stream, to, pattern, bytes) }
        }
    };
    (@ create_stream) => {
        fn create_stream(&self, priority: $crate::StreamPriority) -> Result<$crate::Stream, $crate::DeviceError> {
            self.inner.create_stream(priority)
        }
    };
    (@ destroy_stream) => {
        unsafe fn destroy_stream(&self, stream: $crate::Stream) {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.destroy_stream(stream) }
        }
    };
    (@ create_event) => {
        fn create_event(&self, timing: bool) -> Result<$crate::Event, $crate::DeviceError> {
            self.inner.create_event(timing)
        }
    };
    (@ destroy_event) => {
        unsafe fn destroy_event(&self, event: $crate::Event) {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.destroy_event(event) }
        }
    };
    (@ record_event) => {
        unsafe fn record_event(&self, stream: $crate::Stream, event: $crate::Event) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.record_event(stream, event) }
        }
    };
    (@ wait_event) => {
        unsafe fn wait_event(&self, stream: $crate::Stream, event: $crate::Event) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.wait_event(stream, event) }
        }
    };
    (@ event_passed) => {
        unsafe fn event_passed(&self, event: $crate::Event) -> bool {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.event_passed(event) }
        }
    };
    (@ poll_event) => {
        unsafe fn poll_event(&self, event: $crate::Event) -> Result<bool, $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.poll_event(event) }
        }
    };
    (@ synchronise_event) => {
        unsafe fn synchronise_event(&self, event: $crate::Event) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.synchronise_event(event) }
        }
    };
    (@ elapsed) => {
        unsafe fn elapsed(&self, start: $crate::Event, end: $crate::Event) -> Result<Option<f64>, $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.elapsed(start, end) }
        }
    };
    (@ synchronise) => {
        unsafe fn synchronise(&self, stream: $crate::Stream) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.synchronise(stream) }
        }
    };
    (@ is_idle) => {
        unsafe fn is_idle(&self, stream: $crate::Stream) -> bool {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.is_idle(stream) }
        }
    };
    (@ poll) => {
        unsafe fn poll(&self, stream: $crate::Stream) -> Result<bool, $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.poll(stream) }
        }
    };
    (@ assist) => {
        unsafe fn assist(&self, stream: $crate::Stream) -> bool {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.assist(stream) }
        }
    };
    (@ assemble) => {
        fn assemble(&self, code: &[u8]) -> Result<Option<Vec<u8>>, $crate::DeviceError> {
            self.inner.assemble(code)
        }
    };
    (@ load_module) => {
        unsafe fn load_module(&self, image: &$crate::Image<'_>) -> Result<$crate::Module, $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.load_module(image) }
        }
    };
    (@ unload_module) => {
        unsafe fn unload_module(&self, module: $crate::Module) {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.unload_module(module) }
        }
    };
    (@ function) => {
        unsafe fn function(&self, module: $crate::Module, symbol: &str) -> Option<$crate::Function> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.function(module, symbol) }
        }
    };
    (@ function_usage) => {
        unsafe fn function_usage(&self, function: $crate::Function) -> Result<Option<$crate::FunctionUsage>, $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.function_usage(function) }
        }
    };
    (@ launch) => {
        unsafe fn launch(&self, launch: &$crate::Launch<'_>) -> Result<(), $crate::DeviceError> {
            // SAFETY: the caller keeps the contract of the verb.
            unsafe { self.inner.launch(launch) }
        }
    };
}

/// The verbs that a file with an `impl` of [`Device`](crate::Device) neither hands on nor answers. For tests of those who stand before a device.
pub fn forgotten_verbs(file: &str) -> Vec<&'static str> {
    fn answered(text: &str) -> impl Iterator<Item = &str> {
        text.lines().filter_map(|line| {
            let line = line.trim_start().trim_start_matches("unsafe ");
            line.strip_prefix("fn ").and_then(|rest| rest.split_once('(')).map(|(name, _)| name)
        })
    }
    let (_, declared) = include_str!("device.rs").split_once("pub unsafe trait Device").unwrap_or_default();
    let handed =
        file.split_once("forward_verbs!(").and_then(|(_, rest)| rest.split_once(')')).unwrap_or_default().0;
    let handed: Vec<_> = handed.split(',').map(str::trim).chain(answered(file)).collect();
    answered(declared).filter(|verb| !handed.contains(verb)).collect()
}
