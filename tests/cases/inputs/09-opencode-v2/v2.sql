BEGIN TRANSACTION;
CREATE TABLE `session_message` (`id` text PRIMARY KEY,`session_id` text NOT NULL,`type` text NOT NULL,`seq` integer NOT NULL,`time_created` integer NOT NULL,`time_updated` integer NOT NULL,`data` text NOT NULL);
INSERT INTO "session_message" VALUES('m_0','ses_new','user',0,1767225600010,1767225600010,'{"text": "new question", "time": {"created": 1767225600010}}');
INSERT INTO "session_message" VALUES('m_1','ses_new','assistant',1,1767225600011,1767225600011,'{"model": {"id": "claude-sonnet-4-5", "providerID": "anthropic"}, "content": [{"type": "text", "text": "new answer"}, {"type": "tool", "id": "call_1", "name": "read", "state": {"status": "completed", "input": {"path": "a"}, "output": "content of a"}}], "tokens": {"input": 5, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}}, "time": {"created": 1767225600011, "completed": 1767225600012}}');
CREATE TABLE `session_v2` (`id` text PRIMARY KEY,`project_id` text NOT NULL,`parent_id` text,`fork_session_id` text,`slug` text NOT NULL,`directory` text NOT NULL,`title` text,`version` text NOT NULL,`model` text,`time_created` integer NOT NULL,`time_updated` integer NOT NULL);
INSERT INTO "session_v2" VALUES('ses_new','p',NULL,NULL,'s','/PROJECT','t','2.0.12',NULL,1767225600000,1767225600000);
COMMIT;
