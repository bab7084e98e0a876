import * as cdk from 'aws-cdk-lib';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { SmartRedriver } from 'smart-redriver-cdk';

const app = new cdk.App();
const stack = new cdk.Stack(app, 'Shop');
const dead = new sqs.Queue(stack, 'DeadLetters', { retentionPeriod: cdk.Duration.days(14) });
const orders = new sqs.Queue(stack, 'Orders', { deadLetterQueue: { queue: dead, maxReceiveCount: 5 } });
new SmartRedriver(stack, 'OrdersRedriver', {
  sourceQueue: orders,
  deadLetterQueue: dead,
  settings: { mode: 'dry_run', maxAttempts: 3, lastChance: cdk.Duration.hours(12) },
});
app.synth();
