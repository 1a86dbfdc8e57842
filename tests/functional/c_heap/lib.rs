//! The functions of `native.c`.

unsafe extern "C" {
    pub safe fn leak_one_kib() -> *mut u8;
    pub safe fn leak_2000() -> *mut u8;
    pub safe fn copy_of_text() -> *mut u8;
    pub safe fn append(bytes: usize);
    pub safe fn keep_last(turn: usize);
    pub safe fn use_all() -> i32;
    pub safe fn map_pages(bytes: usize) -> i32;
}
