#include "evals/task_data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "checkpoint/json.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/mapped_file.hpp"

namespace quantmap {
namespace {

using nlohmann::json;
using Folders = std::vector<std::filesystem::path>;

constexpr const char* kWhat = "task data";

// The first of the folders that has the file; empty if none has.
std::filesystem::path locate(const std::string& file, const Folders& folders) {
  for (const auto& folder : folders)
    if (std::filesystem::is_regular_file(folder / file)) return folder / file;
  return {};
}

[[noreturn]] void not_found(const Task& task, const std::vector<std::string>& files, const Folders& folders) {
  std::vector<std::string> shown;
  for (const auto& folder : folders) shown.push_back(folder.string());
  fail_input(
      kWhat, fmt::format("{}", fmt::join(files, " or ")),
      fmt::format("not found for task {} in {} (give the folder that holds it by --data; docs/tasks.md "
                  "says what each file is)",
                  task.name, fmt::join(shown, ", ")));
}

void add_record(std::vector<TaskRecord>& records, json value, std::string place, const std::string& file) {
  if (!value.is_object()) fail_input(kWhat, file, place, "an object", describe(value));
  records.push_back({std::move(value), std::move(place)});
}

std::vector<TaskRecord> read_records(std::string_view text, const std::string& file) {
  std::vector<TaskRecord> records;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '[') {
    json array = parse_json(text, kWhat, file);
    for (json& value : array)
      add_record(records, std::move(value), fmt::format("record {}", records.size()), file);
    return records;
  }
  std::int64_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view one = text.substr(at, end - at);
    at = end + 1;
    ++line;
    if (one.find_first_not_of(" \t\r") == one.npos) continue;
    const std::string place = fmt::format("line {}", line);
    add_record(records, parse_json(one, kWhat, fmt::format("{}: {}", file, place)), place, file);
  }
  return records;
}

// Whether a record has `value` at `path`, as text.
bool is_at(const json& record, const std::string& path, const std::string& value) {
  return has_path(record, path) && TextTemplate(fmt::format("{{{}}}", path)).render(record) == value;
}

void keep_own(const Task& task, TaskData& data) {
  if (task.where_path.empty()) return;
  std::set<std::string> others;
  for (const TaskRecord& record : data.records)
    if (has_path(record.value, task.where_path))
      others.insert(TextTemplate(fmt::format("{{{}}}", task.where_path)).render(record.value));
  std::erase_if(data.records, [&](const TaskRecord& record) {
    return !is_at(record.value, task.where_path, task.where_value);
  });
  if (data.records.empty())
    fail_input(kWhat, data.path, fmt::format("no records of task {}", task.name),
               fmt::format("{} {}", task.where_path, quoted(task.where_value)),
               others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", ")));
}

}  // namespace

Folders task_folders(const Task& task, const std::string& data, const std::filesystem::path& datasets) {
  Folders folders;
  if (!data.empty()) folders.emplace_back(data);
  if (task.source.ends_with(".json")) folders.push_back(std::filesystem::path(task.source).parent_path());
  folders.push_back(datasets / "cache");
  folders.push_back(datasets);
  for (auto& folder : folders)
    if (folder.empty()) folder = ".";
  return folders;
}

TaskData read_task_data(const Task& task, const Folders& folders) {
  TaskData data;
  std::vector<std::string> files;
  for (const TaskForm& form : task.forms) {
    if (std::find(files.begin(), files.end(), form.file) == files.end()) files.push_back(form.file);
    const std::filesystem::path path = locate(form.file, folders);
    if (path.empty()) continue;
    const MappedFile file(path);
    std::vector<TaskRecord> records = read_records(file.text(), file.name());
    if (records.empty()) fail_input(kWhat, file.name(), "no records");
    if (!form.condition.empty() && !has_path(records.front().value, form.condition)) continue;
    data.form = form;
    data.path = file.name();
    data.sha256 = sha256(file.text());
    data.records = std::move(records);
    break;
  }
  if (data.path.empty()) not_found(task, files, folders);
  keep_own(task, data);
  if (task.shots == 0) return data;
  for (const std::string& name : task.shots_data) {
    const std::filesystem::path path = locate(name, folders);
    if (path.empty()) continue;
    const MappedFile file(path);
    data.shots_path = file.name();
    data.shots_sha256 = sha256(file.text());
    data.shots = read_records(file.text(), file.name());
    return data;
  }
  not_found(task, task.shots_data, folders);
}

}  // namespace quantmap
