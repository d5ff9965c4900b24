//! Looks names up: variables come first, then functions of the file, of the folders, builtins and the library.

use super::Interp;
use super::call::Callee;
use super::exception::quoted;
use crate::builtins;
use crate::compile;
use crate::env::{FunctionFiles, add_files};
use crate::error::{Flow, fail};
use crate::library::{self, Written};
use crate::source::{Origin, Source};
use crate::syntax;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Interp {
    /// Finds the function that a name stands for: first among the file's own functions, then in the folder `private`
    /// beside the file, then in files on the path, then among the builtins, then in the library.
    ///
    /// # Errors
    /// A function file that cannot be read or parsed.
    pub fn lookup(&mut self, name: &str) -> Flow<Option<Callee>> {
        if let Some(nested) = self.nested_function(name) {
            return Ok(Some(nested));
        }
        let home = self.frame().map(|f| f.code.source.home().clone());
        let in_library = self.in_library();
        self.lookup_from(name, home.as_ref(), in_library, false)
    }

    /// Finds the function of a handle: as [`Interp::lookup`] does in the text that made the handle.
    pub fn lookup_named(&mut self, name: &str, source: Option<&Arc<Source>>) -> Flow<Option<Callee>> {
        let Some(home) = source.map(Source::home) else { return self.lookup(name) };
        let in_library = home.origin == Origin::Library;
        self.lookup_from(name, Some(home), in_library, in_library)
    }

    /// Finds the function that a name stands for in the file `home`. With `in_library`, it also finds functions that
    /// only the library may call. With `language_first`, builtins and the library take precedence over the script's
    /// functions.
    pub(super) fn lookup_from(
        &mut self,
        name: &str,
        home: Option<&Arc<Source>>,
        in_library: bool,
        language_first: bool,
    ) -> Flow<Option<Callee>> {
        if let Some(home) = home {
            let of_file = self.locals.get(&(Arc::as_ptr(home) as usize)).and_then(|file| file.get(name));
            let of_session = self.functions.get(name).filter(|code| Arc::ptr_eq(&code.source, home));
            if let Some(code) = of_file.or(of_session) {
                return Ok(Some(Callee::User(code.clone())));
            }
            if !self.env.options.sandbox
                && let Some(path) = home.private(name)
            {
                return self.load_private(path).map(Some);
            }
        }
        if language_first && let Some(callee) = self.lookup_language(name, in_library)? {
            return Ok(Some(callee));
        }
        if let Some(code) = self.functions.get(name) {
            return Ok(Some(Callee::User(code.clone())));
        }
        if let Some(path) = self.files.get(name).cloned() {
            return self.load_file(name, &path).map(Some);
        }
        if !language_first && let Some(callee) = self.lookup_language(name, in_library)? {
            return Ok(Some(callee));
        }
        self.lookup_new(name)
    }

    /// Finds a function file that was written after the folders were read.
    fn lookup_new(&mut self, name: &str) -> Flow<Option<Callee>> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.chars().all(is_name) {
            return Ok(None);
        }
        let file = |folder: &PathBuf| Some(folder.join(format!("{name}.m"))).filter(|path| path.is_file());
        let Some(path) = self.env.function_folders().find_map(file) else { return Ok(None) };
        Arc::make_mut(&mut self.files).insert(name.into(), path.clone());
        self.load_file(name, &path).map(Some)
    }

    /// Finds a builtin or a function of the library.
    fn lookup_language(&mut self, name: &str, in_library: bool) -> Flow<Option<Callee>> {
        if let Some(builtin) = builtins::find(name) {
            return Ok(Some(Callee::Builtin(builtin)));
        }
        let shared = || library::find_shared(name).filter(|_| in_library);
        match library::find(name).or_else(shared) {
            Some(written) => self.load_written(written).map(Some),
            None => Ok(None),
        }
    }

    /// Whether the innermost frame is of a function that a function file defines.
    pub fn is_in_function_file(&self) -> bool {
        self.frame().is_some_and(|f| self.locals.contains_key(&(Arc::as_ptr(&f.code.source) as usize)))
    }

    /// Whether the innermost frame is of a function of the library.
    pub fn in_library(&self) -> bool {
        self.frame().is_some_and(|f| library::holds(&f.code))
    }

    /// Loads a function of the library, and the other functions of its text.
    fn load_written(&mut self, written: &'static Written) -> Flow<Callee> {
        let loaded = written.load()?;
        let address = Arc::as_ptr(&loaded.code.source) as usize;
        self.locals.entry(address).or_insert_with(|| (*loaded.functions).clone());
        Ok(Callee::User(loaded.code))
    }

    /// Reads a file of a folder `private`, once. Only the files beside that folder see it.
    fn load_private(&mut self, path: &Path) -> Flow<Callee> {
        if let Some(callee) = self.privates.get(path) {
            return Ok(callee.clone());
        }
        let callee = self.read_file(path)?;
        self.privates.insert(path.into(), callee.clone());
        Ok(callee)
    }

    /// Reads a function file, or a script file.
    fn load_file(&mut self, name: &str, path: &Path) -> Flow<Callee> {
        let callee = self.read_file(path)?;
        if let Callee::User(code) = &callee {
            self.functions.insert(name.into(), code.clone());
        }
        Ok(callee)
    }

    fn read_file(&mut self, path: &Path) -> Flow<Callee> {
        let stamp = std::fs::metadata(path).ok().and_then(|found| Some((found.modified().ok()?, found.len())));
        if let Some((of, code)) = self.read.get(path)
            && stamp == Some(*of)
            && self.locals.contains_key(&(Arc::as_ptr(&code.source) as usize))
        {
            return Ok(Callee::User(code.clone()));
        }
        let text = match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => return fail!("could not read {}: {error}", path.display()),
        };
        let source = Source::file(path, text);
        let mut file = syntax::parse(&source).map_err(quoted)?;
        if !file.begins_with_function {
            return Ok(Callee::Script(Arc::new(file)));
        }
        // A call by the file's name means its first function, so statements behind the functions are dropped.
        file.body.clear();
        file.is_function_file = true;
        let mut unit = compile::compile(&file, true)?;
        let first = unit.first_function.as_ref().and_then(|f| unit.functions.get(f)).cloned();
        // The first function is called by the file's name, whatever name it is declared with.
        let declared = unit.first_function.filter(|name| path.file_stem().is_some_and(|stem| stem != &**name));
        declared.map(|name| unit.functions.remove(&name));
        self.locals.insert(Arc::as_ptr(&source) as usize, unit.functions);
        match first {
            Some(code) => {
                if let Some(stamp) = stamp {
                    self.read.insert(path.into(), (stamp, code.clone()));
                }
                Ok(Callee::User(code))
            }
            None => fail!("{} defines no function", path.display()),
        }
    }

    /// Adds a folder in which function files are looked for: before the other added folders, or after them.
    pub fn add_folder(&mut self, folder: PathBuf, first: bool) {
        let added = &mut self.env.added;
        added.retain(|other| *other != folder);
        added.insert(if first { 0 } else { added.len() }, folder);
        self.find_files_again();
    }

    /// Sets the folders in which function files are looked for, instead of those that were added before.
    pub fn set_folders(&mut self, folders: Vec<PathBuf>) {
        self.env.added = folders;
        self.find_files_again();
    }

    /// Removes a folder from those in which function files are looked for.
    pub fn remove_folder(&mut self, folder: &Path) {
        self.env.added.retain(|other| other != folder);
        self.find_files_again();
    }

    /// Makes this the folder to which file names are relative. Functions in it take precedence, and those of the
    /// previous folder are no longer found.
    pub fn go_to(&mut self, folder: PathBuf) {
        self.env.folder = Some(folder);
        self.find_files_again();
    }

    /// Reads the names of the function files again: in the folder of `cd`, the script's own, and the added ones.
    /// Functions whose names now stand for another file, or none, are forgotten.
    fn find_files_again(&mut self) {
        let mut files = FunctionFiles::default();
        self.env.function_folders().for_each(|folder| add_files(&mut files, folder));
        let before = std::mem::replace(&mut self.files, Arc::new(files));
        let files = &self.files;
        self.functions.retain(|name, code| match before.get(name) {
            Some(file) if code.source.is_file(file) => files.get(name) == Some(file),
            _ => true,
        });
    }
}
