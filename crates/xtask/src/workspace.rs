//! The workspace's crates and what each asks for, as `cargo metadata` tells it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// A crate of the workspace.
pub struct Crate {
    pub name: String,
    pub directory: PathBuf,
    pub dependencies: Vec<Dependency>,
}

/// One line of a crate's dependency tables.
pub struct Dependency {
    /// The name of the package, whatever the crate calls it.
    pub name: String,
    pub kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Normal,
    Build,
    /// Only tests, benches and examples see it.
    Dev,
}

/// Reads every member of the workspace, sorted by name.
pub fn read() -> Result<Vec<Crate>, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version=1"])
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

fn parse(metadata: &str) -> Result<Vec<Crate>, String> {
    let metadata: Value =
        serde_json::from_str(metadata).map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
    let mut crates = list(&metadata, "packages")?.iter().map(parse_crate).collect::<Result<Vec<_>, _>>()?;
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(crates)
}

fn parse_crate(package: &Value) -> Result<Crate, String> {
    let manifest = PathBuf::from(text(package, "manifest_path")?);
    let directory = manifest.parent().ok_or("a manifest without a directory")?.to_path_buf();
    let dependencies =
        list(package, "dependencies")?.iter().map(parse_dependency).collect::<Result<Vec<_>, _>>()?;
    Ok(Crate { name: text(package, "name")?.to_owned(), directory, dependencies })
}

fn parse_dependency(dependency: &Value) -> Result<Dependency, String> {
    let kind = match dependency["kind"].as_str() {
        None => Kind::Normal,
        Some("build") => Kind::Build,
        Some("dev") => Kind::Dev,
        Some(other) => return Err(format!("cargo metadata has a dependency of unknown kind `{other}`")),
    };
    Ok(Dependency { name: text(dependency, "name")?.to_owned(), kind })
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>, String> {
    value[key].as_array().ok_or_else(|| format!("cargo metadata has no list `{key}`"))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("cargo metadata has no text `{key}`"))
}
