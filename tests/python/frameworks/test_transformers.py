# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Trainer of transformers: processes.py 2 python3 -m pytest test_transformers.py"""

import pytest
import torch
import torch.distributed

from pages import run_example
from ranks import require_trained

transformers = pytest.importorskip("transformers")


def language_model():
    torch.manual_seed(1)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2))


def test_trainer(tmp_path):
    arguments = transformers.TrainingArguments(
        str(tmp_path), use_cpu=True, ddp_backend="gloo", per_device_train_batch_size=2, max_steps=3, learning_rate=0.1,
        lr_scheduler_type="constant", optim="sgd", max_grad_norm=0, save_strategy="no", report_to="none", disable_tqdm=True)
    torch.manual_seed(2)
    dataset = [{"input_ids": tokens, "labels": tokens} for tokens in torch.randint(32, (12, 8))]
    seen = []

    def collate(items):
        seen.append({name: torch.stack([item[name] for item in items]) for name in items[0]})
        return seen[-1]

    model = language_model()
    run_example("docs/pytorch_frameworks.md", "Trainer of transformers", model=model, arguments=arguments, collate=collate,
                dataset=dataset)
    batches = [None, None]
    torch.distributed.all_gather_object(batches, seen[:3])
    require_trained(model.parameters(), batches, make=language_model, loss_of=lambda model, batch: model(**batch).loss)
