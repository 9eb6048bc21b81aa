//! Judges: their prompts, the forms of their answers, and the second question.

use super::support::{Player, judged};
use crate::NodeError;
use crate::node::judge::bounded;

const CHECK: &str = "{name: j, judge: 'Is ${ n.text } good?'}";

async fn verdict(check: &str, answer: &str) -> Option<String> {
    judged(check, &Player::default().answers([Ok(answer)]), 0).await.0
}

// SW8
#[tokio::test]
async fn the_prompt_has_the_question_the_data_and_the_form_of_the_answer() {
    let player = Player::default().answers([Ok("VERDICT: yes\nREASONING: it is")]);
    assert_eq!(judged(CHECK, &player, 7).await, (None, 1));
    assert_eq!(player.asked(), ["n Judge default-judge 7"]);
    let text = player.prompt(0).text;
    let context = "{\"input\":{\"topic\":\"tea\"},\"n\":null}";
    for part in ["Is a good?", context, "{\"text\":\"a\"}", "VERDICT: one word, `yes` or `no`\nREASONING: "] {
        assert!(text.contains(part), "{text}");
    }
}

// SW4
#[tokio::test]
async fn the_model_of_the_check_comes_before_that_of_the_document() {
    let player = Player::default().answers([Ok("yes")]);
    judged("{name: j, judge: Good?, model: large}", &player, 0).await;
    assert_eq!(player.asked(), ["n Judge large 0"]);
}

// SW8
#[tokio::test]
async fn the_word_is_read_in_every_form() {
    for answer in [
        "VERDICT: yes\nREASONING: fine",
        "Let me see.\n**Verdict:** Yes.\n**Reasoning:** fine",
        "verdict: YES",
        "yes: it does",
        "Yes",
        "`yes`\nbecause it does",
        "VERDICT: yes, all of it",
        "> VERDICT: \"yes\"",
    ] {
        assert_eq!(verdict(CHECK, answer).await, None, "{answer}");
    }
    for (answer, failure) in [
        ("VERDICT: No\nREASONING: too long,\nand dull", "the judge says `no`: too long, and dull"),
        ("VERDICT: no\ntoo long", "the judge says `no`: too long"),
        ("REASONING: too long,\nand dull\nVERDICT: no", "the judge says `no`: too long, and dull"),
        ("**VERDICT:** no\n**REASONING:** too long", "the judge says `no`: too long"),
        ("no: none", "the judge says `no`: none"),
        ("no", "the judge says `no`"),
        ("no\ntoo long", "the judge says `no`: too long"),
        ("yes-and-no: both", "the judge says `yes-and-no`: both"),
        ("VERDICT: yesterday", "the judge says `yesterday`"),
    ] {
        assert_eq!(verdict(CHECK, answer).await.as_deref(), Some(failure), "{answer}");
    }
}

// SW8
#[tokio::test]
async fn the_word_is_compared_with_pass_when() {
    let check = "{name: j, judge: Which?, pass_when: Grounded}";
    assert_eq!(verdict(check, "VERDICT: grounded").await, None);
    assert_eq!(verdict(check, "VERDICT: yes").await.unwrap(), "the judge says `yes`");
    assert_eq!(verdict("{name: j, judge: Secrets?, pass_when: no}", "no: none").await, None);
    assert_eq!(verdict("{name: j, judge: Right?, pass_when: true}", "true").await, None);

    let player = Player::default().answers([Ok("grounded")]);
    judged(check, &player, 0).await;
    assert!(player.prompt(0).text.contains("one word, `grounded` if the data passes, else another word"));
}

// SW8
#[tokio::test]
async fn an_error_or_an_answer_without_verdict_is_asked_once_more() {
    let player = Player::default().answers([Err(NodeError::model("away")), Ok("yes")]);
    assert_eq!(judged(CHECK, &player, 3).await, (None, 2));
    assert_eq!(player.asked(), ["n Judge default-judge 3", "n Judge default-judge 4"]);
    assert_eq!((player.prompt(0).asked, player.prompt(0).text), (3, player.prompt(1).text));

    let player = Player::default().answers([Ok("I think it is fine"), Ok("no: it is not")]);
    assert_eq!(judged(CHECK, &player, 0).await, (Some("the judge says `no`: it is not".into()), 2));
}

// SW8
#[tokio::test]
async fn a_second_answer_without_verdict_fails_the_check() {
    for (second, failure) in [
        (Ok("I think\nso"), "the judge gave no verdict: I think so"),
        (Ok("REASONING: hm"), "the judge gave no verdict: REASONING: hm"),
        (Ok("VERDICT:"), "the judge gave no verdict: VERDICT:"),
        (Ok(""), "the judge gave no verdict: "),
        (Ok("Answer:\nyes"), "the judge gave no verdict: Answer: yes"),
        (Err(NodeError::transient("still away")), "the judge failed: still away"),
    ] {
        let player = Player::default().answers([Ok("I do not know"), second]);
        assert_eq!(judged(CHECK, &player, 0).await, (Some(failure.trim().into()), 2));
    }
}

#[tokio::test]
async fn a_rubric_without_a_value_fails_the_check_and_asks_nobody() {
    let player = Player::default();
    let (failure, asked) = judged("{name: j, judge: 'Is ${ n.text + 1 } good?'}", &player, 0).await;
    assert!(failure.unwrap().starts_with("`n.text + 1`: "));
    assert_eq!(asked, 0);
}

#[test]
fn without_an_executor_no_judge_passes() {
    let failure = super::support::unmet("{name: j, judge: Good?}", serde_json::json!({}));
    assert_eq!(failure.unwrap(), "no executor of agents is there to judge");
}

// SW6
#[tokio::test]
async fn the_reasoning_is_cut() {
    let failure = verdict(CHECK, &format!("no: {}", "long ".repeat(500))).await.unwrap();
    assert_eq!(failure.chars().count(), 501);
}

#[test]
fn data_is_cut_where_it_is_larger_than_a_prompt_should_be() {
    assert_eq!(bounded(&serde_json::json!({"a": "ä"})), "{\"a\":\"ä\"}");
    let cut = bounded(&"ä".repeat(1 << 20).into());
    assert!(cut.ends_with("ä…") && cut.len() <= (1 << 20) + 3, "{}", cut.len());
}
