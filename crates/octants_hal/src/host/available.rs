//! What the system says about memory: how much there is, how much is left, and how much of it a range of addresses has.
//!
//! A machine, a group of processes (a container, a batch job) and a process can each have a limit of their own. Whatever is not there, on a
//! system other than Linux for instance, bounds nothing.

use std::fs;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// How many bytes there may ever be: memory and swap of the machine, or what a group of processes that we are in may have.
pub(super) fn machine() -> u64 {
    // SAFETY: plain questions to the system.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let memory = match (u64::try_from(pages), u64::try_from(size)) {
        (Ok(pages), Ok(size)) => pages.saturating_mul(size),
        _ => u64::MAX,
    };
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = memory.saturating_add(kilobytes(&text, "SwapTotal:").unwrap_or(0));
    groups().iter().filter_map(Group::limit).fold(machine, u64::min)
}

/// How many bytes the machine can back now, beside what everybody uses; so for each group that we are in.
pub(super) fn left() -> u64 {
    let machine = left_in_machine().unwrap_or(u64::MAX);
    groups().iter().filter_map(Group::left).fold(machine, u64::min)
}

/// What the processor calls itself.
pub(super) fn processor_name() -> Option<String> {
    // The first processor's part: the system asks each core for the rest, which takes milliseconds where there are many.
    let mut text = [0; 1024];
    let length = fs::File::open("/proc/cpuinfo").ok()?.read(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text[..length]);
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Bytes of a core's second-level cache; 0 if the system does not say.
pub(super) fn second_level_cache() -> u64 {
    let index = Path::new("/sys/devices/system/cpu/cpu0/cache/index2/size");
    let text = fs::read_to_string(index).unwrap_or_default();
    let kilobytes = text.trim().strip_suffix('K').and_then(|size| size.parse::<u64>().ok());
    kilobytes.map_or(0, |kilobytes| kilobytes << 10)
}

/// How many bytes of addresses the process may still map.
pub(super) fn addresses_left() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = |field: usize| text.split_ascii_whitespace().nth(field)?.parse::<u64>().ok();
    // SAFETY: a plain question to the system.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let left =
        |limit: u64, field: usize| limit.saturating_sub(pages(field).unwrap_or(0).saturating_mul(page));
    left(limit(libc::RLIMIT_AS), 0).min(left(limit(libc::RLIMIT_DATA), 5))
}

/// A limit of the process; the greatest number where there is none.
fn limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut found = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the system writes one such structure.
    unsafe { libc::getrlimit(resource, &raw mut found) };
    found.rlim_cur
}

/// Bytes that nobody uses, or that are only copies of files, and swap that is free.
fn left_in_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let memory = kilobytes(&text, "MemAvailable:")?;
    Some(memory.saturating_add(kilobytes(&text, "SwapFree:").unwrap_or(0)))
}

/// What a line of `/proc/meminfo` or `/proc/self/smaps` says, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    of_kilobytes(line)
}

fn of_kilobytes(text: &str) -> Option<u64> {
    let kilobytes: u64 = text.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// A group of processes whose memory is counted together, by either version of the system's interface.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Group {
    folder: PathBuf,
    files: &'static GroupFiles,
}

#[derive(PartialEq, Eq, Debug)]
struct GroupFiles {
    limit: &'static str,
    used: &'static str,
    /// Lines of `memory.stat`: copies of files that were not used for long, and others.
    inactive: &'static str,
    active: &'static str,
}

const VERSION_1: GroupFiles = GroupFiles {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    inactive: "total_inactive_file ",
    active: "total_active_file ",
};

const VERSION_2: GroupFiles = GroupFiles {
    limit: "memory.max",
    used: "memory.current",
    inactive: "inactive_file ",
    active: "active_file ",
};

/// The groups that we are in and that may have a limit. A process seldom changes its group, so they are looked for once.
fn groups() -> &'static [Group] {
    static GROUPS: OnceLock<Vec<Group>> = OnceLock::new();
    GROUPS.get_or_init(|| {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let named = groups_named(&text, Path::new("/sys/fs/cgroup"));
        named.into_iter().filter(|group| group.folder.join(group.files.limit).exists()).collect()
    })
}

/// The group that each line names, those around it, and the outermost: in a container that is the container's, whatever the line says.
fn groups_named(text: &str, mount: &Path) -> Vec<Group> {
    let mut groups = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (outermost, files) = match controllers {
            "" => (mount.to_path_buf(), &VERSION_2),
            _ if controllers.split(',').any(|name| name == "memory") => (mount.join("memory"), &VERSION_1),
            _ => continue,
        };
        let inner = outermost.join(path.trim_start_matches('/'));
        let around = inner.ancestors().take_while(|folder| folder.starts_with(&outermost));
        groups.extend(around.map(|folder| Group { folder: folder.to_path_buf(), files }));
    }
    groups
}

impl Group {
    fn number(&self, file: &str) -> Option<u64> {
        fs::read_to_string(self.folder.join(file)).ok()?.trim().parse().ok()
    }

    fn limit(&self) -> Option<u64> {
        self.number(self.files.limit)
    }

    /// Copies of files do not count: all that were not used for long, and half of the others, among which is the code that runs.
    fn left(&self) -> Option<u64> {
        let (limit, used) = (self.limit()?, self.number(self.files.used)?);
        let text = fs::read_to_string(self.folder.join("memory.stat")).unwrap_or_default();
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|bytes| bytes.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let files = bytes(self.files.inactive).saturating_add(bytes(self.files.active) / 2);
        Some(limit.saturating_sub(used.saturating_sub(files)))
    }
}

/// How many bytes of each range have memory; ranges are in order and do not overlap.
pub(super) fn resident(ranges: &[Range<u64>]) -> Option<Vec<u64>> {
    fs::read_to_string("/proc/self/smaps").ok().map(|text| resident_by(&text, ranges))
}

fn resident_by(text: &str, ranges: &[Range<u64>]) -> Vec<u64> {
    let mut found = vec![0; ranges.len()];
    let mut mapping = 0..0;
    for line in text.lines() {
        if let Some(bytes) = line.strip_prefix("Rss:").and_then(of_kilobytes) {
            let first = ranges.partition_point(|range| range.end <= mapping.start);
            for (range, found) in ranges.iter().zip(&mut found).skip(first) {
                if range.start >= mapping.end {
                    break;
                }
                // The system may show neighbours as one mapping: each has its share then.
                let both = range.end.min(mapping.end) - range.start.max(mapping.start);
                let share = u128::from(bytes) * u128::from(both) / u128::from(mapping.end - mapping.start);
                *found += share as u64;
            }
        } else if let Some(addresses) = mapping_at(line) {
            mapping = addresses;
        }
    }
    found
}

/// The addresses of a mapping, if the line begins the description of one.
fn mapping_at(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?).filter(|range| range.start < range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_less_left_than_it_has() {
        let text = "MemTotal:       16000 kB\nMemAvailable:    4000 kB\nSwapTotal:          0 kB\n";
        assert_eq!(kilobytes(text, "MemAvailable:"), Some(4000 << 10));
        assert_eq!(kilobytes(text, "SwapFree:"), None);
        assert_eq!(kilobytes("MemAvailable: much", "MemAvailable:"), None);
        assert!(left() > 0 && left() < machine());
    }

    #[test]
    fn groups_are_found_with_those_around_them() {
        let mount = Path::new("/mnt");
        let of = |text: &str| {
            let groups = groups_named(text, mount);
            groups.iter().map(|group| group.folder.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("0::/user.slice/job\n"), ["/mnt/user.slice/job", "/mnt/user.slice", "/mnt"]);
        assert_eq!(of("0::/\n"), ["/mnt/", "/mnt"][..1].to_vec());
        assert_eq!(of("9:cpu:/a\n4:hugetlb,memory:/job\n"), ["/mnt/memory/job", "/mnt/memory"]);
        assert!(of("").is_empty() && of("nonsense").is_empty());
    }

    #[test]
    fn a_group_has_left_what_it_does_not_use() {
        let folder = std::env::temp_dir().join(format!("octants_group_{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("memory.stat", "anon 10\ninactive_file 100\nactive_file 40\n");
        write("memory.current", "700\n");
        write("memory.max", "max\n");
        let group = Group { folder: folder.clone(), files: &VERSION_2 };
        assert_eq!((group.limit(), group.left()), (None, None));
        write("memory.max", "1000\n");
        assert_eq!((group.limit(), group.left()), (Some(1000), Some(1000 - (700 - 120))));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn mappings_say_how_much_memory_ranges_have() {
        let text = "1000-3000 rw-p 00000000 00:00 0\nSize: 8 kB\nRss:                   4 kB\nPss: 4 kB\n\
                    7000-f000 rw-p 00000000 00:00 0 [heap]\nRss:                  16 kB\n";
        assert_eq!(resident_by(text, &[0x1000..0x3000, 0x7000..0xb000, 0xb000..0xf000]), [4096, 8192, 8192]);
        assert_eq!(resident_by(text, &[0x3000..0x4000, 0x5000..0x7000]), [0, 0]);
        assert_eq!(resident_by("", &[0x1000..0x3000, 0x7000..0xf000]), [0, 0]);
    }
}
