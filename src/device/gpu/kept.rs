//! The format of cache files: a header and data that is accepted only as a whole.
//!
//! In: data, and the adapter to which it belongs. Out: a file's bytes, and the reverse. Must hold: data of another
//! driver, of another version of the format, or of a damaged file is not accepted.

use std::hash::Hasher;

/// The first bytes of a file: its type and the version of its format.
pub(super) type Magic = [u8; 24];

/// The data after a header: magic, a hash of adapter, driver and data, and the length.
pub(super) fn wrapped(magic: &Magic, data: &[u8], about: &wgpu::AdapterInfo) -> Vec<u8> {
    let mut file = Vec::with_capacity(magic.len() + 16 + data.len());
    file.extend_from_slice(magic);
    file.extend_from_slice(&number(data, about).to_le_bytes());
    file.extend_from_slice(&(data.len() as u64).to_le_bytes());
    file.extend_from_slice(data);
    file
}

/// The bytes of a file, at most `bytes_max`, if it is whole and of this adapter and driver.
pub(super) fn unwrapped(
    magic: &Magic,
    mut file: Vec<u8>,
    about: &wgpu::AdapterInfo,
    bytes_max: usize,
) -> Option<Vec<u8>> {
    let head = magic.len() + 16;
    if file.len() < head || file.len() > head + bytes_max || !file.starts_with(magic) {
        return None;
    }
    let word = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
    let (expected, length) = (word(magic.len())?, word(magic.len() + 8)?);
    let data = file.split_off(head);
    (length == data.len() as u64 && expected == number(&data, about)).then_some(data)
}

fn number(data: &[u8], about: &wgpu::AdapterInfo) -> u64 {
    // The hash may differ if another compiler version built this program. The file is then not accepted, and written
    // again.
    let mut hasher = std::hash::DefaultHasher::new();
    for words in [&about.name, &about.driver, &about.driver_info] {
        hasher.write(words.as_bytes());
        hasher.write_u8(0xff);
    }
    hasher.write(data);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::adapter;
    use crate::device::gpu::tests::rig::no_adapter;

    #[test]
    fn a_file_is_taken_whole_and_of_the_same_driver_or_not_at_all() {
        if no_adapter() {
            return;
        }
        const MAGIC: &Magic = b"tidemill tests, 1\n\n\n\n\n\n\n";
        let unwrapped = |file: Vec<u8>, about: &wgpu::AdapterInfo| unwrapped(MAGIC, file, about, 100);
        let about = adapter::abouts().remove(0);
        let file = wrapped(MAGIC, b"what a driver compiled", &about);
        assert_eq!(unwrapped(file.clone(), &about).as_deref(), Some(&b"what a driver compiled"[..]));
        for length in 0..file.len() {
            assert_eq!(unwrapped(file[..length].to_vec(), &about), None, "cut to {length}");
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert_eq!(unwrapped(damaged, &about), None, "damaged at {at}");
        }
        let mut longer = file.clone();
        longer.push(0);
        assert_eq!(unwrapped(longer, &about), None);
        assert_eq!(unwrapped(wrapped(MAGIC, &[0; 101], &about), &about), None);
        let other = wgpu::AdapterInfo { driver_info: "of tomorrow".to_owned(), ..about };
        assert_eq!(unwrapped(file, &other), None);
    }
}
