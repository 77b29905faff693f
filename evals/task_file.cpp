#include "evals/task_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <span>

#include "checkpoint/json.hpp"
#include "core/error.hpp"
#include "core/mapped_file.hpp"
#include "embedded/tasks.hpp"

namespace quantmap {
namespace {

using nlohmann::json;

constexpr const char* kWhat = "task file";
constexpr std::int64_t kMaxShots = 100;

// Keys that an entry of `data` may give for itself.
constexpr std::array<std::string_view, 6> kFormKeys{"description",  "context", "contexts",
                                                    "continuation", "choices", "gold"};
constexpr std::array<std::string_view, 18> kKeys{
    "about",       "base",       "kind",       "parameter", "data",          "where",
    "description", "context",    "choices",    "contexts",  "continuation",  "delimiter",
    "gold",        "shots_data", "shots_same", "shots",     "normalization", "shot_separator"};

struct Kind {
  std::string_view name;
  TaskKind kind;
};
constexpr std::array<Kind, 3> kKinds{{{"multiple_choice", TaskKind::multiple_choice},
                                      {"multiple_true", TaskKind::multiple_true},
                                      {"last_word", TaskKind::last_word}}};

// One task file being read: typed access with the file and key in every message.
class Reader {
 public:
  Reader(json object, std::string file) : object_(std::move(object)), file_(std::move(file)) {}

  Task read(const std::string& name) const {
    check_keys(object_, "", kKeys);
    Task task;
    task.name = name;
    task.source = file_;
    task.about = text(object_, "about", "");
    task.kind = kind();
    task.delimiter = text(object_, "delimiter", " ");
    read_normalization(task);
    read_where(task);
    read_shots(task);
    const json& data = required(object_, "data");
    if (!data.is_array() || data.empty()) wrong("data", "an array of files", data);
    for (std::size_t i = 0; i < data.size(); ++i)
      task.forms.push_back(read_form(data[i], fmt::format("data[{}]", i), task.kind));
    return task;
  }

 private:
  [[noreturn]] void wrong(std::string_view place, std::string_view expected, const json& found) const {
    fail_input(kWhat, file_, place, expected, describe(found));
  }

  // Runs `parse`, whose errors are details alone, with the file and the place before them.
  template <typename Parse>
  auto at(const std::string& place, const Parse& parse) const {
    try {
      return parse();
    } catch (const Error& error) {
      fail_input(kWhat, file_, fmt::format("{}: {}", place, error.what()));
    }
  }

  void check_keys(const json& object, const std::string& place,
                  std::span<const std::string_view> known) const {
    for (const auto& [key, value] : object.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        fail_input(kWhat, file_,
                   fmt::format("{}{}unknown key {} (known: {})", place, place.empty() ? "" : ": ",
                               quoted(key), fmt::join(known, ", ")));
  }

  const json& required(const json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) fail_input(kWhat, file_, fmt::format("no key {}", quoted(key)));
    return *found;
  }

  std::string text(const json& object, const char* key, const char* otherwise) const {
    if (!object.contains(key)) return otherwise;
    if (!object[key].is_string()) wrong(key, "a string", object[key]);
    return object[key].get<std::string>();
  }

  TaskKind kind() const {
    const json& value = required(object_, "kind");
    for (const Kind& row : kKinds)
      if (value == std::string(row.name)) return row.kind;
    wrong("kind", "multiple_choice, multiple_true or last_word", value);
  }

  void read_normalization(Task& task) const {
    task.by_characters = task.by_bytes = task.by_tokens = task.kind == TaskKind::multiple_choice;
    if (!object_.contains("normalization")) return;
    const json& list = object_["normalization"];
    constexpr const char* kExpected = "an array of characters, bytes and tokens";
    if (!list.is_array()) wrong("normalization", kExpected, list);
    if (!list.empty() && task.kind != TaskKind::multiple_choice)
      fail_input(kWhat, file_, "normalization", "none where the kind is not multiple_choice", describe(list));
    task.by_characters = task.by_bytes = task.by_tokens = false;
    for (const json& name : list) {
      if (name == "characters")
        task.by_characters = true;
      else if (name == "bytes")
        task.by_bytes = true;
      else if (name == "tokens")
        task.by_tokens = true;
      else
        wrong("normalization", kExpected, name);
    }
  }

  void read_where(Task& task) const {
    if (!object_.contains("where")) return;
    const json& where = object_["where"];
    if (!where.is_object() || where.size() != 1 || !where.begin()->is_string())
      wrong("where", "one path and the string that is there", where);
    task.where_path = where.begin().key();
    task.where_value = where.begin()->get<std::string>();
    at("where", [&] { return has_path(json::object(), task.where_path); });
  }

  void read_shots(Task& task) const {
    task.shot_separator = text(object_, "shot_separator", "\n\n");
    task.shots_same = text(object_, "shots_same", "");
    at("shots_same", [&] { return has_path(json::object(), task.shots_same); });
    if (object_.contains("shots")) {
      const json& shots = object_["shots"];
      if (!shots.is_number_unsigned() || shots > kMaxShots)
        wrong("shots", fmt::format("a whole number from 0 to {}", kMaxShots), shots);
      task.shots = shots.get<std::int64_t>();
    }
    if (object_.contains("shots_data")) {
      const json& files = object_["shots_data"];
      if (!files.is_array()) wrong("shots_data", "an array of files", files);
      for (const json& file : files) {
        if (!file.is_string()) wrong("shots_data", "an array of files", file);
        task.shots_data.push_back(file.get<std::string>());
      }
    }
    if (task.shots > 0 && task.shots_data.empty())
      fail_input(kWhat, file_, "shots", "shots_data: the file of the examples", "none");
  }

  TaskForm read_form(const json& entry, const std::string& place, TaskKind kind) const {
    TaskForm form;
    json keys = json::object();
    for (const std::string_view key : kFormKeys)
      if (object_.contains(key)) keys[std::string(key)] = object_[std::string(key)];
    std::string prefix;
    if (entry.is_string()) {
      form.file = entry.get<std::string>();
    } else {
      if (!entry.is_object() || !entry.contains("file") || !entry["file"].is_string())
        wrong(place, "a file, or an object with the key file", entry);
      form.file = entry["file"].get<std::string>();
      form.condition = text(entry, "if", "");
      for (const auto& [key, value] : entry.items()) {
        if (key == "file" || key == "if") continue;
        if (std::find(kFormKeys.begin(), kFormKeys.end(), key) == kFormKeys.end())
          fail_input(kWhat, file_,
                     fmt::format("{}: unknown key {} (known: file, if, {})", place, quoted(key),
                                 fmt::join(kFormKeys, ", ")));
        keys[key] = value;
      }
      at(place, [&] { return has_path(json::object(), form.condition); });
    }
    if (form.file.empty()) fail_input(kWhat, file_, place, "a file", "an empty name");
    read_texts(keys, kind, form);
    return form;
  }

  void read_texts(const json& keys, TaskKind kind, TaskForm& form) const {
    const auto absent = [&](const char* key, std::string_view why) {
      if (keys.contains(key))
        fail_input(kWhat, file_, fmt::format("{} does not go with {}", quoted(key), why));
    };
    const auto whole = [&](const char* key) {
      return at(key, [&] { return TextTemplate::from_json(required(keys, key)); });
    };
    const auto list = [&](const char* key) {
      return at(key, [&] { return ListTemplate(required(keys, key)); });
    };
    if (keys.contains("description")) form.description = whole("description");
    if (kind == TaskKind::last_word) {
      for (const char* key : {"choices", "contexts", "gold"}) absent(key, "kind last_word");
      form.context = whole("context");
      required(keys, "continuation");
      form.choices = at("continuation", [&] { return ListTemplate(json::array({keys["continuation"]})); });
      form.gold = TextTemplate("0");
      return;
    }
    if (keys.contains("contexts")) {
      for (const char* key : {"choices", "context"}) absent(key, "contexts");
      form.contexts = list("contexts");
      required(keys, "continuation");
      form.choices = at("continuation", [&] { return ListTemplate(json::array({keys["continuation"]})); });
    } else {
      absent("continuation", "choices");
      required(keys, "context");
      required(keys, "choices");
      form.context = whole("context");
      form.choices = list("choices");
    }
    read_gold(required(keys, "gold"), kind, form);
  }

  void read_gold(const json& gold, TaskKind kind, TaskForm& form) const {
    if (gold.is_object()) {
      if (!gold.contains("is") || !gold.contains("among") || gold.size() != 2 || !gold["is"].is_string())
        wrong("gold", "a template of an index, or {\"is\": TEMPLATE, \"among\": LIST}", gold);
      form.gold = at("gold.is", [&] { return TextTemplate(gold["is"].get<std::string>()); });
      form.among = at("gold.among", [&] { return ListTemplate(gold["among"]); });
      return;
    }
    if (kind == TaskKind::multiple_true || !gold.is_string())
      wrong("gold",
            kind == TaskKind::multiple_true
                ? "{\"is\": TEMPLATE, \"among\": LIST} where the kind is multiple_true"
                : "a template of an index, or {\"is\": TEMPLATE, \"among\": LIST}",
            gold);
    form.gold = at("gold", [&] { return TextTemplate(gold.get<std::string>()); });
  }

  json object_;
  std::string file_;
};

json parse_object(std::string_view text, const std::string& file) {
  json object = parse_json(text, kWhat, file);
  if (!object.is_object()) fail_input(kWhat, file, "", "an object", describe(object));
  return object;
}

// `mmlu_SUBJECT` and `mmlu_anatomy` give `anatomy`.
std::optional<std::string> argument_of(std::string_view file_name, std::string_view parameter,
                                       std::string_view name) {
  const std::string_view prefix = file_name.substr(0, file_name.size() - parameter.size());
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return std::nullopt;
  const std::string_view rest = name.substr(prefix.size());
  const bool plain = std::all_of(rest.begin(), rest.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  return plain ? std::optional(std::string(rest)) : std::nullopt;
}

// Replaces the parameter in every string of `data` and `where`.
void put_argument(json& value, std::string_view parameter, const std::string& argument) {
  if (value.is_structured())
    for (json& inner : value) put_argument(inner, parameter, argument);
  if (!value.is_string()) return;
  auto& text = value.get_ref<std::string&>();
  if (const std::size_t at = text.find(parameter); at != std::string::npos)
    text.replace(at, parameter.size(), argument);
}

std::string built_in_name(std::string_view stem) { return fmt::format("built-in task {}", stem); }

std::optional<json> find_built_in(std::string_view name) {
  for (const auto& [stem, text] : embedded::tasks)
    if (stem == name) {
      json object = parse_object(text, built_in_name(stem));
      if (!object.contains("parameter")) return object;
    }
  for (const auto& [stem, text] : embedded::tasks) {
    json object = parse_object(text, built_in_name(stem));
    if (!object.contains("parameter")) continue;
    const std::string parameter = object["parameter"];
    if (const auto argument = argument_of(stem, parameter, name)) {
      for (const char* key : {"data", "where"})
        if (object.contains(key)) put_argument(object[key], parameter, *argument);
      object.erase("parameter");
      return object;
    }
  }
  return std::nullopt;
}

// What a file says over what its base says; null takes a key away.
json with_base(json object, const std::string& file) {
  if (!object.contains("base")) return object;
  if (!object["base"].is_string())
    fail_input(kWhat, file, "base", "a built-in task", describe(object["base"]));
  const std::string base = object["base"];
  std::optional<json> below = find_built_in(base);
  if (!below) fail_input(kWhat, file, "base", "a built-in task", quoted(base));
  json whole = with_base(std::move(*below), built_in_name(base));
  whole.update(object);
  for (auto entry = whole.begin(); entry != whole.end();)
    entry = entry->is_null() ? whole.erase(entry) : std::next(entry);
  return whole;
}

}  // namespace

const char* task_kind_name(TaskKind kind) {
  return std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& row) { return row.kind == kind; })
      ->name.data();
}

std::vector<KnownTask> known_tasks() {
  std::vector<KnownTask> known;
  for (const auto& [stem, text] : embedded::tasks) {
    const json object = parse_object(text, built_in_name(stem));
    known.push_back({std::string(stem), object.value("about", "")});
  }
  return known;
}

Task find_task(const std::string& name_or_path) {
  if (name_or_path.ends_with(".json")) {
    const std::filesystem::path path = name_or_path;
    const MappedFile file(path);
    json object = with_base(parse_object(file.text(), file.name()), file.name());
    if (object.contains("parameter"))
      fail_input(kWhat, file.name(), "parameter: only built-in tasks have parameters");
    return Reader(std::move(object), file.name()).read(path.stem().string());
  }
  if (std::optional<json> object = find_built_in(name_or_path))
    return Reader(with_base(std::move(*object), built_in_name(name_or_path)), built_in_name(name_or_path))
        .read(name_or_path);
  std::vector<std::string> names;
  for (const KnownTask& known : known_tasks()) names.push_back(known.name);
  fail_usage("unknown task", fmt::format("{} (expected a file NAME.json or one of: {})", quoted(name_or_path),
                                         fmt::join(names, ", ")));
}

}  // namespace quantmap
