/// What the drop-in library tells its user, and what the user told it.
#pragma once

#include <string>

namespace faiss_bits::dropin {

/// FAISS_BITS_DROPIN, read once when the library is loaded.
enum class Mode {
    On,  ///< "on", or not set
    Log, ///< "log": as on, and a line on stderr for each replaced function
    Off  ///< "off": every call goes to FAISS
};

/// Any other value counts as On, with a line on stderr.
Mode mode();

/// One line on stderr.
void say(const std::string& text);

/// As say, but the same text only once in the life of the process.
void sayOnce(const std::string& text);

} // namespace faiss_bits::dropin
