//! `boxery embedded-server`: the VM on this machine; not for people.

use camino::Utf8PathBuf;

use boxery_pin::VmName;
use boxery_remote::embedded::{self, EmbeddedVm};

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::{env, reach};

/// Serve the VM on this machine; started on demand by the other verbs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM, to start and keep its server
    #[arg(required_unless_present = "inside")]
    name: Option<VmName>,
    /// Serve from here, with this folder as `/`
    #[arg(long, num_args = 2, value_names = ["FOLDER", "ROOT"], conflicts_with = "name")]
    inside: Option<Vec<Utf8PathBuf>>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    match (&args.inside, &args.name) {
        (Some(inside), _) => {
            let [folder, root] = inside.as_slice() else {
                return Err(Failure::usage("`--inside` takes two folders"));
            };
            reach::block_on(embedded::serve(folder, root))??;
        }
        (None, Some(name)) => {
            let vm = EmbeddedVm::new(app.embedded_folder(name));
            let program = env::own_binary()?;
            reach::block_on(embedded::keep(
                &vm,
                &program,
                &["embedded-server", "--inside"],
            ))??;
        }
        (None, None) => return Err(Failure::usage("which VM?")),
    }
    Ok(Exit::Done)
}
