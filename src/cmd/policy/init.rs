//! `boxery policy init`.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use boxery_policy::{FILE_NAMES, TEMPLATES};
use camino::Utf8PathBuf;

use crate::app::App;
use crate::env;
use crate::error::Failure;
use crate::exit::Exit;
use crate::policy::{Caller, InForce, Standing, Trusted, accept_line, accepts, read};

/// Write a policy that extends a template
///
/// In the current folder, or with `--user` your own for every project. A policy that
/// is there already stays as it is.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The template; `--list` names them
    #[arg(long, value_name = "NAME", default_value = "code")]
    template: String,
    /// Write your own policy instead of the project's
    #[arg(long)]
    user: bool,
    /// List the templates, and write nothing
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    if args.list {
        let mut rows = vec![["TEMPLATE", "FOR"].map(str::to_owned).to_vec()];
        for template in TEMPLATES {
            rows.push(vec![template.name.to_owned(), template.about.to_owned()]);
        }
        app.ui.table(&rows);
        return Ok(Exit::Done);
    }
    app.refuse_agents("policy init")?;
    if args.template.contains('/') {
        return Err(Failure::usage(format!(
            "`{}` is not a template's name",
            args.template
        )));
    }
    let template = read(app, &args.template).map_err(|failure| failure.exit(Exit::Usage))?;
    let folder = if args.user {
        let configurations = app.env.config.parent();
        let folder = configurations.map(|folder| folder.join("fence"));
        folder.ok_or("there is no configuration folder")?
    } else {
        env::current_folder()?.canonicalize_utf8()?
    };
    for name in FILE_NAMES {
        let path = folder.join(name);
        if path.symlink_metadata().is_ok() {
            return Err(Failure::from(format!("`{path}` is there already"))
                .hint("boxery changes nothing in it; `boxery policy show` says what it means")
                .exit(Exit::No));
        }
    }
    let path = folder.join(FILE_NAMES[0]);
    write(args, &path)?;
    app.ui.say(format_args!("wrote {path}"));
    let config = app.config()?;
    if !args.user {
        // Whoever writes it trusts it.
        let caller = Caller {
            agent: None,
            folder: &folder,
            project: None,
        };
        let in_force = InForce::find(app, &config, caller)?;
        let trusted = Trusted::new(app);
        if let Some(part) = in_force.parts.first() {
            match part.standing {
                Standing::Untrusted => trusted.add(&part.key, part.resolved.origin.name())?,
                Standing::Own | Standing::Trusted => {}
            }
        }
    }
    let sections = template.content.sections();
    let refused: Vec<_> = sections
        .into_iter()
        .filter(|section| !accepts(&config.accept, *section))
        .collect();
    if !refused.is_empty() {
        let names: Vec<&str> = refused.iter().map(|section| section.name()).collect();
        app.ui.say(format_args!(
            "its rules on {} aren't enforced on VMs yet, so that runs are refused until you accept that: `{}` in {}",
            names.join(", "),
            accept_line(&refused),
            app.config_path()
        ));
    }
    Ok(Exit::Done)
}

fn write(args: &Args, path: &Utf8PathBuf) -> Result<(), Failure> {
    let (file_mode, folder_mode) = if args.user {
        (0o600, 0o750)
    } else {
        (0o644, 0o755)
    };
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(folder_mode)
            .create(folder)?;
    }
    let text = format!(
        "// What agents' commands may do; `boxery policy explain` tells what holds.\n\
         {{\n  \"extends\": \"{}\"\n}}\n",
        args.template
    );
    let file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(file_mode)
        .open(path);
    let cannot = |error: io::Error| Failure::from(format!("cannot write `{path}`: {error}"));
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(cannot)
}
