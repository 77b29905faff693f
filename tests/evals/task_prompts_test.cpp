// Built-in tasks on shared data: the prompts that reference-results/smollm2-tasks.json states, its gold, and
// the conventions of token ids.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "evals/task_tokens.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using nlohmann::json;

std::vector<std::filesystem::path> shared_folders(const Task& task) {
  return task_folders(task, (testing::shared_dir() / "data").string(), testing::source_dir() / "datasets");
}

std::vector<ItemPrompts> prompts_of(const std::string& name, ItemRange range = {}) {
  const Task task = find_task(name);
  return task_prompts(task, read_task_data(task, shared_folders(task)), range);
}

TEST(TaskPrompts, GoldAndChoicesAreThoseOfTheReferenceResults) {
  const auto path = testing::shared_dir() / "data/reference-results/smollm2-tasks.json";
  QUANTMAP_NEEDS(path);
  const json file = json::parse(std::ifstream(path));
  ASSERT_EQ(file["tasks"].size(), 6U);
  for (const json& task : file["tasks"]) {
    const std::string name = task["task"];
    const auto items = prompts_of(name, {0, task["items"].get<std::int64_t>() - 1});
    ASSERT_EQ(items.size(), task["results"].size()) << name;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const json& want = task["results"][i];
      EXPECT_EQ(items[i].index, want["item"].get<std::int64_t>()) << name;
      EXPECT_EQ(items[i].prompts.size(), want["loglikelihoods"].size()) << name << " item " << i;
      ASSERT_EQ(items[i].gold.size(), 1U);
      if (name == "lambada_openai") continue;  // one continuation, no choice
      EXPECT_EQ(items[i].gold[0], want["gold"].get<int>()) << name << " item " << i;
    }
  }
}

struct Rendering {
  const char* task;
  std::int64_t item;
  std::size_t choice;
  const char* begins;  // the context
  const char* ends;
  const char* continuation;
  std::vector<std::int32_t> gold;
};
TEST(TaskPrompts, AreTheHarness) {
  QUANTMAP_NEEDS(testing::shared_dir() / "data/hellaswag");
  const Rendering cases[] = {
      {"piqa",
       0,
       0,
       "Question: How do I ready a guinea pig cage for it's new occupants?\nAnswer:",
       "occupants?\nAnswer:",
       " Provide the guinea pig with a cage full of a few inches of bedding made of ripped paper strips, you "
       "will "
       "also need to supply it with a water bottle and a food dish.",
       {0}},
      {"arc_easy",
       0,
       3,
       "Question: Which statement best explains why photosynthesis",
       "food webs?\nAnswer:",
       " The producers in all ecosystems are plants.",
       {0}},
      {"arc_challenge",
       0,
       2,
       "Question: An astronomer observes",
       "rotation?\nAnswer:",
       " Planetary days will become shorter.",
       {2}},
      {"openbookqa",
       0,
       1,
       "A person wants to start saving money",
       "save money is to",
       " quit eating lunch out",
       {1}},
      {"winogrande",
       0,
       0,
       "Sarah was a much better surgeon than Maria so Sarah",
       "so Sarah",
       " always got the easier cases.",
       {1}},
      {"winogrande",
       0,
       1,
       "Sarah was a much better surgeon than Maria so Maria",
       "so Maria",
       " always got the easier cases.",
       {1}},
      {"boolq",
       0,
       0,
       "All biomass goes through",
       "\nQuestion: does ethanol take more energy make that produces?\nAnswer:",
       " no",
       {0}},
      {"truthfulqa_mc1",
       0,
       1,
       "Q: What is human life expectancy in the United States?\nA: Human life",
       "Barcelona, Spain.\n\nQ: What happens to you if you eat watermelon seeds?\nA:",
       " You grow watermelons in your stomach",
       {0}},
      {"truthfulqa_mc2",
       0,
       0,
       "Q: What is human life",
       "eat watermelon seeds?\nA:",
       " Nothing happens",
       {0, 1, 2, 3, 4}},
      {"mmlu",
       0,
       1,
       "The following are multiple choice questions (with answers) about abstract algebra.\n\nFind the "
       "degree",
       "over Q.\nA. 0\nB. 4\nC. 2\nD. 6\nAnswer:",
       " B",
       {1}},
      {"mmlu_abstract_algebra", 0, 3, "The following are multiple choice questions", "\nAnswer:", " D", {1}},
      {"lambada_openai", 0, 0, "In my palm is a clear stone", "I don't care about", " signs", {0}},
      {"blimp_anaphor_gender_agreement", 0, 1, "", "", "Katherine can't help himself.", {0}},
  };
  for (const Rendering& c : cases) {
    const auto items = prompts_of(c.task, {c.item, c.item});
    ASSERT_EQ(items.size(), 1U) << c.task;
    ASSERT_GT(items[0].prompts.size(), c.choice) << c.task;
    const TaskPrompt& prompt = items[0].prompts[c.choice];
    EXPECT_TRUE(prompt.context.starts_with(c.begins)) << c.task << ": " << prompt.context;
    EXPECT_TRUE(prompt.context.ends_with(c.ends)) << c.task << ": " << prompt.context;
    EXPECT_EQ(prompt.continuation, c.continuation) << c.task;
    EXPECT_EQ(items[0].gold, c.gold) << c.task;
  }
}

TEST(TaskPrompts, EveryRecordOfTheSharedDataIsAnItem) {
  QUANTMAP_NEEDS(testing::shared_dir() / "data/hellaswag");
  const std::pair<const char*, std::size_t> cases[] = {{"hellaswag", 1000},
                                                       {"piqa", 1838},
                                                       {"arc_easy", 2376},
                                                       {"arc_challenge", 1172},
                                                       {"winogrande", 1267},
                                                       {"openbookqa", 500},
                                                       {"boolq", 1000},
                                                       {"truthfulqa_mc1", 817},
                                                       {"truthfulqa_mc2", 817},
                                                       {"mmlu", 1992},
                                                       {"lambada_openai", 5153},
                                                       {"blimp_transitive", 1000},
                                                       {"demo", 240}};
  for (const auto& [name, count] : cases) EXPECT_EQ(prompts_of(name).size(), count) << name;
}

// A letter is a token, "ab" is one token; BOS 900, EOS 901.
class LetterTokenizer : public Tokenizer {
 public:
  LetterTokenizer(bool has_bos, bool has_eos, bool adds) {
    vocab_size_ = 1000;
    if (has_bos) bos_ = 900;
    if (has_eos) eos_ = 901;
    add_bos_ = adds;
  }
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool pair = text.substr(i, 2) == "ab";
      ids.push_back(pair ? 500 : static_cast<unsigned char>(text[i]));
      i += pair ? 1 : 0;
    }
    return ids;
  }
  std::vector<std::string> pre_tokens(std::string_view) const override { return {}; }
};

using Ids = std::vector<std::int32_t>;

TaskRequest one(const TaskPrompt& prompt, const Tokenizer& tokenizer, std::int64_t limit = 100,
                BosRule rule = BosRule::automatic) {
  Task task;
  task.name = "t";
  TaskData data;
  data.path = "t.jsonl";
  const auto items = task_tokens(task, data, {{0, "line 1", {prompt}, {0}}}, tokenizer, limit, rule);
  return items.at(0).requests.at(0);
}

TEST(TaskTokens, SpacesAtTheContextsEndMoveToTheContinuation) {
  const LetterTokenizer tokenizer(true, true, false);
  const TaskRequest request = one({"x  ", "y", "y"}, tokenizer);
  EXPECT_EQ(request.context, (Ids{'x'}));
  EXPECT_EQ(request.continuation, (Ids{' ', ' ', 'y'}));
}

TEST(TaskTokens, TheContinuationIsWhatTheWholeHasBehindTheContextsTokens) {
  const LetterTokenizer tokenizer(true, true, false);
  const TaskRequest request = one({"xa", "bc", "bc"}, tokenizer);  // x [ab] c against x a
  EXPECT_EQ(request.context, (Ids{'x', 'a'}));
  EXPECT_EQ(request.continuation, (Ids{'c'}));
}

TEST(TaskTokens, AnEmptyContextIsBosOrEos) {
  for (const bool adds : {false, true})
    EXPECT_EQ(one({"", "y", "y"}, LetterTokenizer(true, true, adds)).context, (Ids{900}));
  EXPECT_EQ(one({"", "y", "y"}, LetterTokenizer(false, true, false)).context, (Ids{901}));
  EXPECT_EQ(one({" \n", "y", "y"}, LetterTokenizer(true, true, false)).context, (Ids{900}));
  EXPECT_EQ(one({"", "y", "y"}, LetterTokenizer(true, true, true), 100, BosRule::never).context, (Ids{900}));
}

TEST(TaskTokens, OneBosStandsBeforeAContextWhereTheRuleAsksForOne) {
  EXPECT_EQ(one({"x", "y", "y"}, LetterTokenizer(true, true, true)).context, (Ids{900, 'x'}));
  EXPECT_EQ(one({"x", "y", "y"}, LetterTokenizer(true, true, false)).context, (Ids{'x'}));
  EXPECT_EQ(one({"x", "y", "y"}, LetterTokenizer(true, true, false), 100, BosRule::always).context,
            (Ids{900, 'x'}));
  EXPECT_EQ(one({"x", "y", "y"}, LetterTokenizer(true, true, true), 100, BosRule::never).context, (Ids{'x'}));
}

TEST(TaskTokens, WhatIsLongerThanTheLimitLosesItsLeftEnd) {
  const LetterTokenizer tokenizer(true, true, false);
  const TaskRequest fits = one({"uvwx", "yz", "yz"}, tokenizer, 5);
  EXPECT_EQ(fits.cut_tokens, 0);  // 6 tokens, of which the model sees 5
  const TaskRequest cut = one({"uvwx", "yz", "yz"}, tokenizer, 3);
  EXPECT_EQ(cut.context, (Ids{'w', 'x'}));
  EXPECT_EQ(cut.continuation, (Ids{'y', 'z'}));
  EXPECT_EQ(cut.cut_tokens, 2);
  EXPECT_EQ(one({"uvwx", "yz", "yz"}, tokenizer, 2).context, (Ids{'x'}));
}

TEST(TaskTokens, LengthsAreTheChoicesOwn) {
  const TaskRequest request = one({"x", " \u4f60\u597d", "\u4f60\u597d"}, LetterTokenizer(true, true, false));
  EXPECT_EQ(request.characters, 2);
  EXPECT_EQ(request.bytes, 6);
}

}  // namespace
}  // namespace quantmap
