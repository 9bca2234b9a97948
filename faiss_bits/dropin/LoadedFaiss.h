/// The FAISS that is loaded beside this library: where its own functions are,
/// whether it is one that we know, and whether its calls come to us.
#pragma once

#include <string>
#include <vector>

namespace faiss_bits::dropin {

/// What a FAISS may lack: one that lacks a function of a part keeps that part
/// and those that need it.
enum class Part {
    Basic,
    Lists,        ///< scans of inverted lists, of vectors and scalar codes
    ProductLists, ///< those of product codes; needs Lists
    Results       ///< how results come to the host; all need Basic
};

/// One function of FAISS that this library defines. Every FAISS of that set of
/// symbols has it, and calls it.
struct Function {
    const char* name;  ///< "runBlockSelect"
    const char* types; ///< "float keys, 32-bit ids"
    int idBits;        ///< 32 or 64: the set of symbols it belongs to; 0: both
    const void* address; ///< of the overload, for its symbol
    bool isSearch;       ///< a whole search, not a selection alone
    Part part;
};

/// All of them (Functions.cpp).
const std::vector<Function>& functions();

/// A function as FAISS defines it.
struct Original {
    void* address = nullptr; ///< nullptr: no loaded library has it
    std::string library;     ///< path of that library
    /// The line that says so if the library lacks a function that every known
    /// FAISS has, so that this one may mean something else there; or empty.
    std::string unknown;
};

/// Looks behind this library in the order of symbol search, then in every
/// loaded library.
Original findOriginal(const Function& function);

/// What FAISS finds by this name: in its own library, or in those that it is
/// linked with. Without an original, what the program would find. nullptr:
/// nothing. Stays loaded.
void* symbolBehind(const Original& original, const char* symbol);

/// What a look at the loaded libraries tells.
struct Finding {
    enum class State {
        Replaced,  ///< FAISS's calls come to this library, or most of them
        None,      ///< no library with FAISS's GPU part is loaded
        Unknown,   ///< a FAISS without the functions that we know
        Elsewhere, ///< its calls go to its own functions
    };
    State state;
    std::string text; ///< one line that says so, with the library's path
    /// Replaced, but some part is not, as the text says.
    bool lacksSome = false;
};

/// Makes no CUDA call.
Finding inspectLoadedFaiss();

} // namespace faiss_bits::dropin
