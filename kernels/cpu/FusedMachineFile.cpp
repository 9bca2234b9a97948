#include "kernels/cpu/FusedMachineFile.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <map>
#include <sstream>

#include "kernels/common/Error.h"

namespace faiss_bits {

namespace {

constexpr const char* kVariable = "FAISS_BITS_CPU_MACHINE";

[[noreturn]] void fail(const std::string& file, const std::string& what) {
    throw Error(formatMessage(
            "%s '%s': %s", kVariable, file.c_str(), what.c_str()));
}

/// The constants by name; `lanes` is the only whole number.
std::map<std::string, double> constantsOf(const FusedMachine& machine) {
    return {{"operationsPerSecond", machine.operationsPerSecond},
            {"secondsPerValue", machine.secondsPerValue},
            {"secondsPerAccess", machine.secondsPerAccess},
            {"cacheBytes", machine.cacheBytes},
            {"sharedBytes", machine.sharedBytes},
            {"lanes", double(machine.lanes)}};
}

} // namespace

std::string fusedMachineFile() {
    const char* value = std::getenv(kVariable);
    return value ? value : "";
}

bool readFusedMachine(const std::string& file, FusedMachine& machine) {
    errno = 0;
    std::ifstream in(file);
    if (!in) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return false;
        }
        fail(file, std::strerror(errno));
    }
    std::map<std::string, double> found;
    const auto known = constantsOf(machine);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        if (line.empty() || line[0] == '#') {
            continue;
        }
        std::istringstream words(line);
        std::string name, more;
        double value = 0;
        const bool isRight = (words >> name >> value) && !(words >> more) &&
                known.count(name) && std::isfinite(value) && value > 0 &&
                (name != "lanes" ||
                 (value <= 1024 && value == std::floor(value)));
        if (!isRight || !found.emplace(name, value).second) {
            fail(file,
                 formatMessage(
                         "line %d, '%s', is not a new constant and a number "
                         "above 0",
                         number,
                         line.c_str()));
        }
    }
    if (in.bad()) {
        fail(file, "cannot be read");
    }
    for (const auto& [name, value] : known) {
        if (!found.count(name)) {
            fail(file, name + " is missing");
        }
    }
    machine.operationsPerSecond = found["operationsPerSecond"];
    machine.secondsPerValue = found["secondsPerValue"];
    machine.secondsPerAccess = found["secondsPerAccess"];
    machine.cacheBytes = found["cacheBytes"];
    machine.sharedBytes = found["sharedBytes"];
    machine.lanes = int(found["lanes"]);
    return true;
}

void writeFusedMachine(const std::string& file, const FusedMachine& machine) {
    // Processes that start together each write their own and rename it.
    const std::string temporary =
            file + "." + std::to_string(getpid()) + ".part";
    std::ofstream out(temporary);
    out << "# Constants of the cost model of faiss_bits' search on the CPU, in "
           "SI units and bytes.\n# Measured again if this file is removed.\n"
        << std::setprecision(17);
    for (const auto& [name, value] : constantsOf(machine)) {
        out << name << ' ' << value << '\n';
    }
    out.close();
    if (!out || std::rename(temporary.c_str(), file.c_str()) != 0) {
        const std::string why = std::strerror(errno);
        std::remove(temporary.c_str());
        fail(file, "cannot be written: " + why);
    }
}

} // namespace faiss_bits
