//! The functions of include/todoke_iroh.h, which says who owns what. Each catches panics: none may cross into C++.

mod node;
mod questions;

use std::ffi::{c_char, c_void, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice;

use node::{Failure, Node, Sent, StartOptions};

const ID_BYTES: usize = 32;

#[repr(C)]
pub struct Event {
    kind: i32,
    topic: *const u8,
    peer: *const u8,
    bytes: *const u8,
    size: usize,
    number: u64,
}

#[repr(C)]
pub struct Options {
    secret_key: *const u8,
    bind: *const c_char,
    relays: *const c_char,
    threads: u32,
    message_bytes_max: u32,
    connections_max: u32,
    on_event: extern "C" fn(*mut c_void, *const Event),
    context: *mut c_void,
}

/// The callback and its context, which C++ promises to be usable from any thread.
pub struct Listener {
    on_event: extern "C" fn(*mut c_void, *const Event),
    context: *mut c_void,
}
unsafe impl Send for Listener {}
unsafe impl Sync for Listener {}

#[derive(Clone, Copy)]
pub enum Kind {
    Message = 1,
    NeighbourUp = 2,
    NeighbourDown = 3,
    Lagged = 4,
    Ended = 5,
    Known = 6,
    Unknown = 7,
    Question = 8,
    Answer = 9,
    Unanswered = 10,
}

impl Listener {
    pub fn tell(&self, kind: Kind, topic: Option<&[u8; 32]>, peer: Option<&[u8; 32]>, bytes: &[u8]) {
        self.tell_all(kind, topic, peer, 0, bytes);
    }

    pub fn tell_question(&self, kind: Kind, peer: &[u8; 32], number: u64, bytes: &[u8]) {
        self.tell_all(kind, None, Some(peer), number, bytes);
    }

    fn tell_all(
        &self,
        kind: Kind,
        topic: Option<&[u8; 32]>,
        peer: Option<&[u8; 32]>,
        number: u64,
        bytes: &[u8],
    ) {
        let pointer = |id: Option<&[u8; 32]>| id.map_or(std::ptr::null(), |id| id.as_ptr());
        let event = Event {
            kind: kind as i32,
            topic: pointer(topic),
            peer: pointer(peer),
            bytes: bytes.as_ptr(),
            size: bytes.len(),
            number,
        };
        (self.on_event)(self.context, &event);
    }
}

unsafe fn id_at(pointer: *const u8) -> [u8; ID_BYTES] {
    let mut id = [0; ID_BYTES];
    id.copy_from_slice(slice::from_raw_parts(pointer, ID_BYTES));
    id
}

unsafe fn ids_at(pointer: *const u8, count: usize) -> Vec<[u8; ID_BYTES]> {
    (0..count).map(|i| id_at(pointer.add(i * ID_BYTES))).collect()
}

unsafe fn write_text(text: &str, out: *mut c_char, size: usize) -> usize {
    if size == 0 {
        return 0;
    }
    let bytes = &text.as_bytes()[..text.len().min(size - 1)];
    std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast(), bytes.len());
    *out.add(bytes.len()) = 0;
    bytes.len()
}

fn guarded<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// # Safety
/// As include/todoke_iroh.h says; so for every function below.
#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_start(
    options: *const Options,
    why: *mut i32,
    error: *mut c_char,
    error_size: usize,
) -> *mut Node {
    let started = guarded(Err(Failure::Other("it panicked".into())), || {
        let given = &*options;
        Node::start(StartOptions {
            secret_key: id_at(given.secret_key),
            bind: CStr::from_ptr(given.bind).to_string_lossy().into_owned(),
            relays: CStr::from_ptr(given.relays).to_string_lossy().into_owned(),
            threads: given.threads.max(1) as usize,
            message_bytes_max: given.message_bytes_max as usize,
            connections_max: given.connections_max as usize,
            listener: Listener { on_event: given.on_event, context: given.context },
        })
    });
    let (code, text) = match started {
        Ok(node) => {
            *why = 0;
            return Box::into_raw(Box::new(node));
        }
        Err(Failure::Other(text)) => (1, text),
        Err(Failure::AddressInUse) => (2, "the address is in use".into()),
    };
    *why = code;
    write_text(&text, error, error_size);
    std::ptr::null_mut()
}

#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_stop(node: *mut Node) {
    guarded((), || Box::from_raw(node).stop());
}

#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_id_of(secret_key: *const u8, id: *mut u8) -> bool {
    guarded(false, || {
        let public = node::id_of(&id_at(secret_key));
        std::ptr::copy_nonoverlapping(public.as_ptr(), id, ID_BYTES);
        true
    })
}

#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_addresses(node: *const Node, text: *mut c_char, size: usize) -> usize {
    guarded(0, || write_text(&(*node).addresses().join(" "), text, size))
}

#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_dial(node: *const Node, peer: *const u8, address: *const c_char) {
    guarded((), || (*node).dial(id_at(peer), CStr::from_ptr(address).to_string_lossy().into_owned()));
}

#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_forget(node: *const Node, peer: *const u8) {
    guarded((), || (*node).forget(&id_at(peer)));
}

#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_block(node: *const Node, peers: *const u8, count: usize) {
    guarded((), || (*node).block(ids_at(peers, count)));
}

#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_join(
    node: *const Node,
    topic: *const u8,
    peers: *const u8,
    count: usize,
) -> bool {
    guarded(false, || (*node).join(id_at(topic), ids_at(peers, count)))
}

#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_leave(node: *const Node, topic: *const u8) {
    guarded((), || (*node).leave(&id_at(topic)));
}

#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_send(
    node: *const Node,
    topic: *const u8,
    bytes: *const u8,
    size: usize,
) -> i32 {
    guarded(Sent::NotJoined as i32, || {
        (*node).send(&id_at(topic), slice::from_raw_parts(bytes, size)) as i32
    })
}

#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_ask(
    node: *const Node,
    peer: *const u8,
    number: u64,
    bytes: *const u8,
    size: usize,
) {
    guarded((), || (*node).ask(id_at(peer), number, slice::from_raw_parts(bytes, size).to_vec()));
}

#[no_mangle]
pub unsafe extern "C" fn todoke_iroh_answer(node: *const Node, number: u64, bytes: *const u8, size: usize) {
    guarded((), || {
        let answer = (!bytes.is_null()).then(|| slice::from_raw_parts(bytes, size).to_vec());
        (*node).answer(number, answer);
    });
}
