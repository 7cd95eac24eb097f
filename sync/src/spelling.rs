//! Names that are one name on a disk that folds case or Unicode forms.

use unicode_normalization::UnicodeNormalization as _;

use crate::EntryPath;

/// What a side's disk takes for the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Folding {
    /// `Foo` and `foo` are one file.
    pub case: bool,
    /// `é` in one character and in two are one file.
    pub unicode: bool,
}

impl Folding {
    /// A disk on which other bytes are another name.
    pub const NONE: Self = Self {
        case: false,
        unicode: false,
    };

    /// The same bytes for all paths that are one file there. It rather folds too
    /// much (`ß` and `ss`) than too little: a name too many is a named conflict,
    /// one too few is a lost file.
    pub fn key(self, path: &EntryPath) -> Vec<u8> {
        if self == Self::NONE {
            return path.as_bytes().to_vec();
        }
        let mut key = Vec::with_capacity(path.as_bytes().len());
        for chunk in path.as_bytes().utf8_chunks() {
            key.extend(self.key_of_text(chunk.valid()).into_bytes());
            key.extend_from_slice(chunk.invalid());
        }
        key
    }

    fn key_of_text(self, text: &str) -> String {
        match (self.case, self.unicode) {
            (false, false) => text.to_owned(),
            (false, true) => text.nfc().collect(),
            // Disks that fold case fold it whatever the form.
            (true, _) => {
                let decomposed: String = text.nfd().collect();
                let folded = decomposed.to_uppercase().to_lowercase();
                // A final sigma is the one letter whose lower case depends on its place.
                folded.replace('ς', "σ").nfc().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const CASE: Folding = Folding {
        case: true,
        unicode: false,
    };
    const FORM: Folding = Folding {
        case: false,
        unicode: true,
    };

    #[rstest]
    #[case::plain(Folding::NONE, "Foo", "foo", false)]
    #[case::case(CASE, "Foo/Bar", "foo/bar", true)]
    #[case::other(CASE, "Foo", "Fool", false)]
    #[case::accents(CASE, "É", "e\u{301}", true)]
    #[case::sharp_s(CASE, "straße", "STRASSE", true)]
    #[case::sigma(CASE, "ΟΔΟΣ", "οδος", true)]
    #[case::long_s(CASE, "\u{17f}", "S", true)]
    #[case::forms(FORM, "é", "e\u{301}", true)]
    #[case::forms_keep_case(FORM, "É", "é", false)]
    fn names_fold_as_the_disk_does(
        #[case] folding: Folding,
        #[case] one: &str,
        #[case] other: &str,
        #[case] same: bool,
    ) {
        let key = |name: &str| folding.key(&EntryPath::parse(name.as_bytes()).unwrap());
        assert_eq!(key(one) == key(other), same);
    }
}
