/// What the drop-in library tells its user, and what the user told it.
#pragma once

#include <string>

namespace faiss_bits::dropin {

/// FAISS_BITS_DROPIN, read once when the library is loaded: one of these words,
/// or several with commas between them.
struct Mode {
    bool on = true;       ///< "off": every call goes to FAISS
    bool searches = true; ///< "select": only the k-selection is ours
    bool log = false; ///< "log": a line on stderr for each replaced function
};

/// "on" and the empty word change nothing; any other is told on stderr, and
/// does not either.
const Mode& mode();

/// One line on stderr.
void say(const std::string& text);

/// As say, but the same text only once in the life of the process.
void sayOnce(const std::string& text);

} // namespace faiss_bits::dropin
