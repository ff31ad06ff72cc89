//! The file of counts: made, mapped, made anew in a child, and what it says of call sites.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt::Write;
use core::sync::atomic::{
    AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::announcement::LineBuffer;
use crate::histogram::BUCKETS;
use crate::sites::{CountsFile, Header, MAGIC, OBJECTS, Object, PATH_BYTES, SITES};

use super::process;

const PATH: usize = 4096;
const NUMBERED: usize = PATH + 32; // the path, the process and how often it was replaced
const MOST_IMAGES: u32 = 1000; // programs that one process can execute one after another
const UNKNOWN: u64 = 0;

static COUNTS: AtomicPtr<CountsFile> = AtomicPtr::new(core::ptr::null_mut());
static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static PATH_TEXT: [AtomicU64; PATH / 8] = [const { AtomicU64::new(0) }; PATH / 8];
static PATH_LENGTH: AtomicUsize = AtomicUsize::new(0);

/// `struct dl_find_object` (dlfcn.h, glibc 2.35)
#[repr(C)]
struct ObjectInfo {
    flags: u64,
    start: *const c_void,
    end: *const c_void,
    link: *const LinkMap,
    frame: *const c_void,
    reserved: [u64; 7],
}

/// The beginning of `struct link_map` (link.h)
#[repr(C)]
struct LinkMap {
    bias: u64,
    name: *const c_char,
}

/// The counts of this process; none where it does not count, or where a forked child has no file of its own yet.
pub fn counts() -> Option<&'static CountsFile> {
    if COUNTS.load(Acquire).is_null() || !process::is_settled() {
        return None;
    }
    // SAFETY: a mapping that stays for good; null in a forked child that could not map its own file to the same address.
    unsafe { COUNTS.load(Acquire).as_ref() }
}

/// The number of the call site that a function returns to.
pub fn site(counts: &CountsFile, caller: usize) -> usize {
    let (number, is_new) = counts.site(caller as u64);
    if is_new {
        counts.sites[number]
            .object
            .store(object(counts, caller), Relaxed);
    }
    number
}

/// Begins the file `path`.PID; why not, where it cannot.
pub fn begin(path: &CStr, announced: &[u8]) -> Result<(), c_int> {
    let bytes = path.to_bytes();
    if bytes.len() >= PATH {
        return Err(libc::ENAMETOOLONG);
    }
    // SAFETY: looking up allocates only where it fails; this is before the program begins.
    FIND_OBJECT.store(
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) },
        Relaxed,
    );
    store(&PATH_TEXT, bytes);
    PATH_LENGTH.store(bytes.len(), Relaxed);
    let address = mapped(core::ptr::null_mut())?;
    describe(address, announced);
    COUNTS.store(address, Release);
    Ok(())
}

/// In a forked child: a file of its own at the same address, or where there can be none, memory that nobody reads.
pub fn of_child() -> Result<(), c_int> {
    let counts = COUNTS.load(Acquire);
    if counts.is_null() {
        return Ok(());
    }
    // SAFETY: the parent's, still mapped.
    let announced = unsafe { (*counts).header.announcement };
    let address = match mapped(counts) {
        Ok(address) => address,
        Err(_) => over(counts, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1).inspect_err(|_| {
            COUNTS.store(core::ptr::null_mut(), Release); // the parent's are no place for them
        })?,
    };
    describe(address, &announced);
    Ok(())
}

fn describe(counts: *mut CountsFile, announced: &[u8]) {
    let mut announcement = [0; 256];
    for (to, from) in announcement.iter_mut().zip(announced) {
        *to = *from;
    }
    let sizes = [
        SITES as u64,
        OBJECTS as u64,
        PATH_BYTES as u64,
        BUCKETS as u64,
    ];
    let header = Header {
        magic: MAGIC,
        sizes,
        process: AtomicU64::new(u64::from(std::process::id())),
        announcement,
    };
    // SAFETY: mapped, aligned to a page, and nobody else writes the header.
    unsafe { (&raw mut (*counts).header).write(header) };
}

/// Creates and maps the file, at `there` unless that is null.
fn mapped(there: *mut CountsFile) -> Result<*mut CountsFile, c_int> {
    let descriptor = created()?;
    let bytes = libc::off_t::try_from(size_of::<CountsFile>()).unwrap_or(0);
    // SAFETY: a descriptor of ours.
    let sized = unsafe { libc::ftruncate(descriptor, bytes) };
    let address = if sized == 0 {
        over(there, libc::MAP_SHARED, descriptor)
    } else {
        Err(errno())
    };
    // SAFETY: as above; the mapping keeps the file. close(2), and not close(3), as for opening
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
    address
}

fn over(there: *mut CountsFile, flags: c_int, descriptor: c_int) -> Result<*mut CountsFile, c_int> {
    let flags = flags | if there.is_null() { 0 } else { libc::MAP_FIXED };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: new memory, or this library's own mapping of the same size.
    let address = unsafe {
        libc::mmap(
            there.cast(),
            size_of::<CountsFile>(),
            access,
            flags,
            descriptor,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        Err(errno())
    } else {
        Ok(address.cast())
    }
}

/// A new file, so that none that somebody may still read is cut.
fn created() -> Result<c_int, c_int> {
    let process = std::process::id();
    for image in 1..=MOST_IMAGES {
        let mut name = Name {
            text: [0; NUMBERED],
            used: 0,
        };
        name.begin();
        let _ = match image {
            1 => write!(name, ".{process}"),
            _ => write!(name, ".{process}.{image}"),
        };
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
        // The call itself: open(3) is where a thread may be cancelled, and a program may have its own.
        // SAFETY: the name ends in a zero. openat(2)
        let opened = unsafe {
            libc::syscall(
                libc::SYS_openat,
                libc::AT_FDCWD,
                name.text.as_ptr(),
                flags,
                0o644,
            )
        };
        if let Ok(descriptor @ 0..) = c_int::try_from(opened) {
            return Ok(descriptor);
        }
        if errno() != libc::EEXIST {
            break;
        }
    }
    Err(errno())
}

struct Name {
    text: [u8; NUMBERED],
    used: usize,
}

impl Name {
    fn begin(&mut self) {
        self.used = PATH_LENGTH.load(Relaxed);
        for (to, from) in self.text.chunks_exact_mut(8).zip(&PATH_TEXT) {
            to.copy_from_slice(&from.load(Relaxed).to_ne_bytes());
        }
    }
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes() {
            if self.used + 1 < NUMBERED {
                self.text[self.used] = byte;
                self.used += 1;
            }
        }
        Ok(())
    }
}

fn errno() -> c_int {
    // SAFETY: this thread's own, which is always there.
    unsafe { *libc::__errno_location() }
}

/// Which object an address is in. `_dl_find_object` takes no lock and may be called anywhere (glibc manual, 37.5).
fn object(counts: &CountsFile, address: usize) -> u64 {
    let find = FIND_OBJECT.load(Relaxed);
    if find.is_null() {
        return UNKNOWN;
    }
    let mut info = core::mem::MaybeUninit::<ObjectInfo>::zeroed();
    // SAFETY: glibc declares it so.
    let find: unsafe extern "C" fn(usize, *mut ObjectInfo) -> c_int =
        unsafe { core::mem::transmute(find) };
    // SAFETY: `info` is there to be written.
    if unsafe { find(address, info.as_mut_ptr()) } != 0 {
        return UNKNOWN;
    }
    // SAFETY: all zero is a value, and it was written.
    let info = unsafe { info.assume_init() };
    // SAFETY: a loaded object's, which stays: it holds the caller.
    let Some(link) = (unsafe { info.link.as_ref() }) else {
        return UNKNOWN;
    };
    counts.object(info.start as u64, |object| {
        object.bias.store(link.bias, Relaxed);
        name(object, link);
    })
}

fn name(object: &Object, link: &LinkMap) {
    // SAFETY: the dynamic linker's, ended by a zero.
    let name = unsafe { CStr::from_ptr(link.name) }.to_bytes();
    if !name.is_empty() {
        store(&object.path, name);
        return;
    }
    let mut path = [0_u8; PATH_BYTES]; // the program itself, which has no name there
    // SAFETY: `path` is there to be written, but for its last byte.
    let used = process::errno_kept(|| unsafe {
        libc::readlink(
            c"/proc/self/exe".as_ptr(),
            path.as_mut_ptr().cast(),
            PATH_BYTES - 1,
        )
    });
    store(
        &object.path,
        path.get(..usize::try_from(used).unwrap_or(0))
            .unwrap_or_default(),
    );
}

/// Writes bytes into words, cut where they end; the last byte stays zero.
fn store(words: &[AtomicU64], bytes: &[u8]) {
    let bytes = bytes.get(..words.len() * 8 - 1).unwrap_or(bytes);
    for (word, part) in words.iter().zip(bytes.chunks(8)) {
        let mut whole = [0; 8];
        for (to, from) in whole.iter_mut().zip(part) {
            *to = *from;
        }
        word.store(u64::from_ne_bytes(whole), Relaxed);
    }
}

/// Shows a line as the name of a mapping, for as long as the process lives.
pub fn announce(line: &LineBuffer) {
    // SAFETY: the name ends in a zero; the descriptor is closed, the mapping is never touched.
    unsafe {
        let descriptor = libc::memfd_create(line.text().as_ptr().cast(), libc::MFD_CLOEXEC);
        if descriptor >= 0 {
            libc::mmap(
                core::ptr::null_mut(),
                1,
                libc::PROT_NONE,
                libc::MAP_PRIVATE,
                descriptor,
                0,
            );
            libc::close(descriptor);
        }
    }
}
