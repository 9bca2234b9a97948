#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "benchs/common/Options.h"

namespace faiss_bits::bench {

/// Where and of what the numbers are.
struct Meta {
    std::string gpu;
    int computeCapability = 0; ///< 90 for 9.0
    std::string driver;        ///< "unknown" where neither NVML nor /proc tells
    std::string cuda;          ///< of the runtime
    std::string faiss;
    std::string commit;
    std::string date;
    double readBandwidth = 0; ///< GB/s, measured in this run
    /// Of other libraries in the race, by name.
    std::map<std::string, std::string> versions;
    /// Of random cells; 0: the cells are no random ones.
    uint64_t seed = 0;
};

/// Release of the FAISS that the bench was built with.
std::string faissVersion();

/// Meta of the current device.
Meta collectMeta(const Options& options, double readBandwidth);

/// One JSON object, built field by field.
class Row {
   public:
    Row& text(const char* name, const std::string& value);
    Row& integer(const char* name, int64_t value);
    Row& number(const char* name, double value); ///< five digits
    std::string json() const;

   private:
    std::string fields_;
};

/// {"meta": {...}, "rows": [...]}. The file is replaced as a whole after every
/// row, so that a run that is cut short leaves all rows it has measured; with
/// `saveSeconds`, no more often than that, and by save().
class Report {
   public:
    Report(std::string path, const Meta& meta, double saveSeconds = 0);
    void add(const Row& row);
    void save();
    size_t size() const {
        return rows_.size();
    }

   private:
    std::string path_;
    std::chrono::duration<double> saveSeconds_;
    std::chrono::steady_clock::time_point saved_;
    std::string meta_;
    std::vector<std::string> rows_;
};

} // namespace faiss_bits::bench
