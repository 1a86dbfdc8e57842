use std::alloc::{GlobalAlloc, Layout, System};

pub struct Own;

unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        unsafe { System.dealloc(address, layout) }
    }
}

#[cfg(test)]
#[global_allocator]
pub static ALLOC: Own = Own;
