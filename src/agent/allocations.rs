//! Counts allocations per thread, so that the agent can show that deciding
//! makes none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Allocations of this thread so far; 0 for ever where [`Counting`] is not the
/// program's allocator. What C libraries allocate is not counted.
pub fn count() -> u64 {
    COUNT.try_with(Cell::get).unwrap_or(0)
}

fn count_one() {
    // While a thread goes down its counter may be gone already.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

/// The system's allocator, counted.
pub struct Counting;

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        System.alloc(layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, layout);
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_one();
        System.realloc(block, layout, size)
    }
}
