#include "faiss_bits/dropin/LoadedFaiss.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>

#include "faiss_bits/dropin/Messages.h"

namespace faiss_bits::dropin {

namespace {

/// Every FAISS with a GPU part has it.
constexpr const char* kGpuMark = "_ZN5faiss3gpu20StandardGpuResourcesC1Ev";

const link_map* libraryOf(const void* address) {
    Dl_info info;
    void* map = nullptr;
    return dladdr1(address, &info, &map, RTLD_DL_LINKMAP)
            ? static_cast<const link_map*>(map)
            : nullptr;
}

const link_map* thisLibrary() {
    static const char inside = 0;
    static const link_map* const map = libraryOf(&inside);
    return map;
}

std::string pathOf(const link_map* library) {
    return library->l_name[0] ? library->l_name : "the program itself";
}

/// The exported name behind an address, which one of two libraries may define.
std::string symbolOf(const Function& function) {
    Dl_info info;
    return dladdr(function.address, &info) && info.dli_sname ? info.dli_sname
                                                             : "";
}

/// Loaded libraries but this one, in the order in which they were loaded.
std::vector<const link_map*> loadedLibraries() {
    std::vector<const link_map*> libraries;
    const link_map* library = thisLibrary();
    while (library && library->l_prev) {
        library = library->l_prev;
    }
    for (; library; library = library->l_next) {
        if (library != thisLibrary()) {
            libraries.push_back(library);
        }
    }
    return libraries;
}

/// Of a library that is loaded, which it keeps loaded until dlclose.
void* openAgain(const link_map* library) {
    const bool isProgram = library->l_name[0] == 0;
    return dlopen(
            isProgram ? nullptr : library->l_name, RTLD_LAZY | RTLD_NOLOAD);
}

/// The symbol as this library itself defines it, not one that it links.
void* definitionIn(const link_map* library, const char* symbol) {
    void* handle = openAgain(library);
    if (!handle) {
        return nullptr;
    }
    void* address = dlsym(handle, symbol);
    (void)dlclose(handle);
    return address && libraryOf(address) == library ? address : nullptr;
}

/// A part of one set of symbols.
struct Functions {
    int idBits;
    Part part;

    bool has(const Function& f) const {
        return (f.idBits == 0 || f.idBits == idBits) && f.part == part;
    }
};

bool hasAll(const link_map* library, Functions part) {
    return std::all_of(
            functions().begin(), functions().end(), [&](const Function& f) {
                return !part.has(f) ||
                        definitionIn(library, symbolOf(f).c_str());
            });
}

/// The parts of a library's dynamic section that lead to its relocations.
struct Dynamic {
    const char* strings = nullptr;
    const ElfW(Sym) * symbols = nullptr;
    const ElfW(Rela) * tables[2] = {};
    size_t bytes[2] = {};
    bool symbolic = false;

    explicit Dynamic(const link_map* library) {
        // The loader has added the base to pointers, save in some libraries.
        const auto pointer = [&](ElfW(Addr) value) {
            return value < library->l_addr ? value + library->l_addr : value;
        };
        for (const ElfW(Dyn)* entry = library->l_ld; entry->d_tag != DT_NULL;
             ++entry) {
            const auto at = entry->d_un.d_ptr;
            switch (entry->d_tag) {
                case DT_STRTAB:
                    strings = reinterpret_cast<const char*>(pointer(at));
                    break;
                case DT_SYMTAB:
                    symbols = reinterpret_cast<const ElfW(Sym)*>(pointer(at));
                    break;
                case DT_JMPREL:
                    tables[0] =
                            reinterpret_cast<const ElfW(Rela)*>(pointer(at));
                    break;
                case DT_PLTRELSZ:
                    bytes[0] = entry->d_un.d_val;
                    break;
                case DT_RELA:
                    tables[1] =
                            reinterpret_cast<const ElfW(Rela)*>(pointer(at));
                    break;
                case DT_RELASZ:
                    bytes[1] = entry->d_un.d_val;
                    break;
                case DT_SYMBOLIC:
                    symbolic = true;
                    break;
                case DT_FLAGS:
                    symbolic = symbolic || (entry->d_un.d_val & DF_SYMBOLIC);
                    break;
                default:
                    break;
            }
        }
    }
};

/// True if the library's calls of `symbol` come to this library: it looks the
/// symbol up by name, and finds ours first.
bool callsUs(const link_map* library, const std::string& symbol) {
    const Dynamic dynamic(library);
    if (!dynamic.strings || !dynamic.symbols || dynamic.symbolic) {
        return false;
    }
    const void* own = definitionIn(library, symbol.c_str());
    bool byName = false;
    for (int t = 0; t < 2; ++t) {
        const size_t count = dynamic.bytes[t] / sizeof(ElfW(Rela));
        for (size_t i = 0; i < count && dynamic.tables[t]; ++i) {
            const ElfW(Rela)& relocation = dynamic.tables[t][i];
            const auto& wanted =
                    dynamic.symbols[ELF64_R_SYM(relocation.r_info)];
            if (symbol != dynamic.strings + wanted.st_name) {
                continue;
            }
            byName = true;
            // A slot that was filled before we were loaded is lost.
            const void* slot = *reinterpret_cast<void* const*>(
                    library->l_addr + relocation.r_offset);
            if (slot == own) {
                return false;
            }
        }
    }
    return byName &&
            libraryOf(dlsym(RTLD_DEFAULT, symbol.c_str())) == thisLibrary();
}

bool callsUs(const link_map* library, Functions part) {
    return std::all_of(
            functions().begin(), functions().end(), [&](const Function& f) {
                return !part.has(f) || callsUs(library, symbolOf(f));
            });
}

std::string namesOf(Part part) {
    const Functions those{32, part};
    std::string names;
    for (const Function& f : functions()) {
        if (those.has(f)) {
            names += (names.empty() ? "" : ", ") + std::string(f.name);
        }
    }
    return names;
}

const char* nameOf(Part part) {
    return part == Part::Lists           ? "scans of inverted lists"
            : part == Part::ProductLists ? "scans of lists of product codes"
                                         : "ways of results to the host";
}

bool needs(Part part, Part other) {
    return other == Part::Basic || other == part ||
            (part == Part::ProductLists && other == Part::Lists);
}

/// Whether a library has the part that a function belongs to, or needs.
bool hasPartOf(const link_map* library, const Function& function, Part part) {
    for (int idBits : {32, 64}) {
        if ((function.idBits == 0 || function.idBits == idBits) &&
            hasAll(library, {idBits, part})) {
            return true;
        }
    }
    return false;
}

/// The line that refuses a library, or some of its scans.
std::string unknownText(const std::string& library, Part part) {
    return "this version of FAISS is not known: " + library +
            " lacks some of " + namesOf(part) +
            " as FAISS 1.7.3 to 1.15 has them; " +
            (part == Part::Basic
                     ? std::string("nothing is replaced, FAISS runs as it was")
                     : std::string(nameOf(part)) + " are FAISS's");
}

/// What is said of a FAISS that lacks a part.
std::string lackingText(const std::string& replaced, Part part) {
    return replaced + " are replaced, " + nameOf(part) +
            " are not: it lacks some of " + namesOf(part) +
            " as FAISS 1.7.3 to 1.15 has them, or keeps its calls";
}

Finding inspect(const link_map* library) {
    using State = Finding::State;
    const std::string path = pathOf(library);
    for (int idBits : {32, 64}) {
        const auto isOurs = [&](Part part) {
            return hasAll(library, {idBits, part}) &&
                    callsUs(library, {idBits, part});
        };
        if (!hasAll(library, {idBits, Part::Basic})) {
            continue;
        }
        if (!callsUs(library, {idBits, Part::Basic})) {
            return {State::Elsewhere,
                    "the calls of FAISS in " + path +
                            " do not come here (it was loaded first, is ahead "
                            "in the link order, or is linked to keep its "
                            "calls); FAISS runs as it was"};
        }
        const std::string which = "FAISS in " + path + ", " +
                std::to_string(idBits) + "-bit ids: ";
        if (!mode().searches) {
            return {State::Replaced, which + "k-selection is replaced"};
        }
        if (!isOurs(Part::Lists)) {
            return {State::Replaced,
                    which +
                            lackingText(
                                    "flat searches and k-selection",
                                    Part::Lists),
                    true};
        }
        const std::string most = which +
                "flat searches, scans of inverted lists and k-selection";
        for (Part part : {Part::ProductLists, Part::Results}) {
            if (!isOurs(part)) {
                return {State::Replaced, lackingText(most, part), true};
            }
        }
        return {State::Replaced, most + " are replaced"};
    }
    return {State::Unknown, unknownText(path, Part::Basic)};
}

} // namespace

Original findOriginal(const Function& function) {
    Original original;
    const std::string symbol = symbolOf(function);
    if (symbol.empty()) {
        return original;
    }
    const link_map* library = nullptr;
    void* next = dlsym(RTLD_NEXT, symbol.c_str());
    if (next && libraryOf(next) && libraryOf(next) != thisLibrary()) {
        original.address = next;
        library = libraryOf(next);
    } else {
        for (const link_map* candidate : loadedLibraries()) {
            original.address = definitionIn(candidate, symbol.c_str());
            if (original.address) {
                library = candidate;
                break;
            }
        }
    }
    if (library) {
        original.library = pathOf(library);
        for (Part part :
             {Part::Results, Part::ProductLists, Part::Lists, Part::Basic}) {
            if (needs(function.part, part) &&
                !hasPartOf(library, function, part)) {
                original.unknown = unknownText(original.library, part);
            }
        }
    }
    return original;
}

void* symbolBehind(const Original& original, const char* symbol) {
    if (!original.address) {
        return dlsym(RTLD_DEFAULT, symbol);
    }
    // To tell the library of an address the loader reads all of its symbols:
    // 10 us and more for FAISS's, in every search. Never destroyed: FAISS may
    // search while the process ends.
    using Symbols = std::map<std::string, void*, std::less<>>;
    static auto& mutex = *new std::mutex;
    static auto& found = *new std::map<void*, Symbols>;
    {
        const std::lock_guard<std::mutex> lock(mutex);
        const Symbols& symbols = found[original.address];
        const auto known = symbols.find(std::string_view(symbol));
        if (known != symbols.end()) {
            return known->second;
        }
    }
    // Unlocked: the loader has a lock of its own, under which a library that it
    // loads may search.
    void* handle = openAgain(libraryOf(original.address));
    void* address = handle ? dlsym(handle, symbol) : nullptr;
    if (address) { // else a library may bring it later
        const std::lock_guard<std::mutex> lock(mutex);
        found[original.address].emplace(symbol, address);
    }
    return address;
}

Finding inspectLoadedFaiss() {
    Finding worst{
            Finding::State::None,
            "no FAISS with a GPU part is loaded: nothing to replace"};
    for (const link_map* library : loadedLibraries()) {
        if (!definitionIn(library, kGpuMark)) {
            continue;
        }
        const Finding finding = inspect(library);
        if (worst.state == Finding::State::None ||
            finding.state != Finding::State::Replaced) {
            worst = finding;
        }
    }
    return worst;
}

} // namespace faiss_bits::dropin
